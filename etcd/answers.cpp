#include "etcd/answers.hpp"

#include <boost/json.hpp>

#include <charconv>
#include <stdexcept>

namespace kubelane::etcd {

std::string to_hex(member_id id) {
  char text[17];
  const auto end = std::to_chars(text, text + sizeof text, id, 16).ptr;
  return {text, end};
}

namespace {

namespace json = boost::json;

constexpr std::size_t longest_quote = 120;

struct not_as_expected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A part of what somebody sent, for a line of ours.
std::string quoted(std::string_view text) {
  std::string result;
  for (const char letter : text.substr(0, longest_quote))
    result += letter >= ' ' && letter <= '~' ? letter : ' ';
  while (result.ends_with(' ')) result.pop_back();
  return result;
}

const json::value* find(const json::object& in, const char* key) {
  const auto* value = in.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

// 64-bit numbers are text in protobuf's JSON; numbers are taken too.
std::uint64_t number(const json::object& in, const char* key) {
  const auto* value = find(in, key);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0)
    return static_cast<std::uint64_t>(value->get_int64());
  std::uint64_t result = 0;
  if (value->is_string()) {
    const auto& text = value->get_string();
    const auto* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, result);
    if (error == std::errc() && stopped == end) return result;
  }
  throw not_as_expected(std::string(key) + " is no number");
}

std::string text(const json::object& in, const char* key) {
  const auto* value = find(in, key);
  if (value == nullptr) return {};
  if (!value->is_string()) throw not_as_expected(std::string(key) + " is no text");
  return std::string(value->get_string());
}

bool truth(const json::object& in, const char* key) {
  const auto* value = find(in, key);
  if (value == nullptr) return false;
  if (!value->is_bool()) throw not_as_expected(std::string(key) + " is neither true nor false");
  return value->get_bool();
}

const json::array& list(const json::object& in, const char* key) {
  static const json::array none;
  const auto* value = find(in, key);
  if (value == nullptr) return none;
  if (!value->is_array()) throw not_as_expected(std::string(key) + " is no list");
  return value->get_array();
}

const json::object& object(const json::value& value, const char* what) {
  if (!value.is_object()) throw not_as_expected(std::string(what) + " is no object");
  return value.get_object();
}

std::vector<std::string> texts(const json::object& in, const char* key) {
  std::vector<std::string> result;
  for (const auto& one : list(in, key)) {
    if (!one.is_string()) throw not_as_expected(std::string(key) + " holds more than text");
    result.push_back(quoted(one.get_string()));
  }
  return result;
}

// The text form of protobuf in a status: `memberID:8211 alarm:NOSPACE `.
std::optional<alarm> alarm_in(std::string_view text) {
  constexpr std::string_view before_id = "memberID:", before_kind = " alarm:";
  const auto middle = text.find(before_kind);
  if (!text.starts_with(before_id) || middle == text.npos) return std::nullopt;
  const auto digits = text.substr(before_id.size(), middle - before_id.size());
  auto kind = text.substr(middle + before_kind.size());
  kind = kind.substr(0, kind.find(' '));
  alarm result{nobody, std::string(kind)};
  const auto end = digits.data() + digits.size();
  if (std::from_chars(digits.data(), end, result.member).ptr != end) return std::nullopt;
  return result;
}

// Runs `read` on the object that `text` holds.
template <class T, class Read>
parsed<T> parse(std::string_view text, Read read) {
  boost::system::error_code error;
  const auto document = json::parse(text, error);
  if (error) return std::string("the answer is not JSON");
  try {
    return read(object(document, "the answer"));
  } catch (const not_as_expected& wrong) {
    return std::string("the answer is not etcd's: ") + wrong.what();
  }
}

std::string message_of(std::string_view body) {
  boost::system::error_code error;
  const auto document = json::parse(body, error);
  if (error || !document.is_object()) return {};
  for (const char* key : {"message", "error"}) {
    const auto* value = document.get_object().if_contains(key);
    if (value != nullptr && value->is_string()) return quoted(value->get_string());
  }
  return {};
}

}  // namespace

parsed<member_status> parse_status(std::string_view text_of) {
  return parse<member_status>(text_of, [](const json::object& from) {
    const auto* header_value = find(from, "header");
    if (header_value == nullptr) throw not_as_expected("it has no header");
    const auto& header = object(*header_value, "header");
    member_status result;
    result.id = number(header, "member_id");
    if (result.id == nobody) throw not_as_expected("its header names no member");
    result.cluster = number(header, "cluster_id");
    result.leader = number(from, "leader");
    result.term = number(from, "raftTerm");
    if (result.term == 0) result.term = number(header, "raft_term");
    result.raft_index = number(from, "raftIndex");
    result.applied_index = number(from, "raftAppliedIndex");
    result.db_size = number(from, "dbSize");
    result.db_size_in_use = number(from, "dbSizeInUse");
    result.version = quoted(text(from, "version"));
    result.is_learner = truth(from, "isLearner");
    for (const auto& one : texts(from, "errors"))
      if (auto raised = alarm_in(one)) result.alarms.push_back(std::move(*raised));
    return result;
  });
}

parsed<std::vector<listed_member>> parse_members(std::string_view text_of) {
  using result_type = std::vector<listed_member>;
  return parse<result_type>(text_of, [](const json::object& from) {
    result_type result;
    for (const auto& value : list(from, "members")) {
      const auto& one = object(value, "a member");
      result.push_back({number(one, "ID"), quoted(text(one, "name")), texts(one, "peerURLs"),
                        texts(one, "clientURLs"), truth(one, "isLearner")});
      if (result.back().id == nobody) throw not_as_expected("a member has no ID");
    }
    if (result.empty()) throw not_as_expected("it lists no members");
    return result;
  });
}

parsed<std::vector<alarm>> parse_alarms(std::string_view text_of) {
  using result_type = std::vector<alarm>;
  return parse<result_type>(text_of, [](const json::object& from) {
    result_type result;
    for (const auto& value : list(from, "alarms")) {
      const auto& one = object(value, "an alarm");
      result.push_back({number(one, "memberID"), quoted(text(one, "alarm"))});
    }
    return result;
  });
}

std::string explain_refusal(unsigned status, std::string_view reason, std::string_view body) {
  auto words = message_of(body);
  const auto line = std::to_string(status) + (reason.empty() ? "" : " " + quoted(reason));
  // The server's own refusals begin with `etcdserver:`; the rest is the gateway's, which is a
  // client of that server: `connection closed`, `write tcp ...: broken pipe`.
  if (status == 503 && !words.empty() && !words.starts_with("etcdserver:"))
    return line + " (" + words +
           "): its gateway cannot reach its own server; with --client-cert-auth the member's "
           "--cert-file needs clientAuth besides serverAuth";
  if (status == 404)
    return line +
           ": no /v3 gateway there; etcd before 3.4 has /v3beta or /v3alpha, "
           "--enable-grpc-gateway=false has none, and a peer URL (2380) is no client URL (2379)";
  if (status == 401 || status == 403 || words.find("permission denied") != words.npos)
    return line + (words.empty() ? "" : " (" + words + ")") +
           ": it wants a user; its gateway cannot take one from a client certificate";
  return words.empty() ? line : line + ": " + words;
}

}  // namespace kubelane::etcd
