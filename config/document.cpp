#include "config/document.hpp"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace kubelane::config {
namespace {

constexpr std::size_t deepest = 16;
constexpr auto too_deep = "nested more than 16 levels deep";
constexpr std::size_t most_problems = 1000;

position place(const YAML::Mark& mark) {
  return {std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
}

position place(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {static_cast<int>(lines) + 1, static_cast<int>(offset - start) + 1};
}

/// Length of the UTF-8 sequence that starts the text, or 0 if it is none. Source: RFC 3629.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const auto lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const auto second = byte(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool no_character = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
  return overlong || no_character ? 0 : length;
}

/// The first byte that no YAML file may hold. The parser must not see one: it takes 0x04 for the
/// end of the file and would drop what follows without a word.
std::optional<problem> find_foreign_byte(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return problem{{1, 1}, "file", "is UTF-16: save it as UTF-8"};
  for (std::size_t i = 0; i < text.size();) {
    const auto length = sequence_length(text.substr(i));
    if (length == 0) return problem{place(text, i), "file", "is not UTF-8 here: save it as UTF-8"};
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool blank = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !blank) || byte == 0x7f)
      return problem{place(text, i), "file", "has a control character here: is it a text file?"};
    i += length;
  }
  return std::nullopt;
}

/// Builds the tree from the parser's events. The library's own tree keeps only one of two equal
/// keys, and expands aliases.
class tree_builder final : public YAML::EventHandler {
 public:
  explicit tree_builder(std::vector<problem>& out) : out_(out) {}

  std::optional<node> take_root() { return std::exchange(root_, std::nullopt); }
  position started_at() const { return started_at_; }

  void OnDocumentStart(const YAML::Mark& mark) override { started_at_ = place(mark); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    add({node::kind::empty, place(mark), {}, false, {}, {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    complain(place(mark), next_path(), "aliases are not supported: write the value out");
    // As if the key were not there: one mistake, one line.
    if (!frames_.empty() && frames_.back().pending)
      frames_.back().pending.reset();
    else
      add({node::kind::empty, place(mark), {}, false, {}, {}});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& text) override {
    refuse_tag(mark, tag);
    add({node::kind::scalar, place(mark), text, tag == "!", {}, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, node::kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, node::kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  struct key {
    std::string text;
    position at;
    bool usable = false;
  };

  struct frame {
    node value;
    std::string path;
    std::optional<key> pending;  // of a mapping: read, its value is still to come
    std::map<std::string, position, std::less<>> seen;
  };

  /// Stops at a number no person would read, so that rubbish costs no time.
  void complain(position at, std::string path, std::string message) {
    if (out_.size() == most_problems)
      throw YAML::ParserException(YAML::Mark::null_mark(), "more than 1000 problems");
    out_.push_back({at, std::move(path), std::move(message)});
  }

  std::string next_path() const {
    if (frames_.empty()) return "file";
    const auto& top = frames_.back();
    if (top.value.is == node::kind::list)
      return top.path + "[" + std::to_string(top.value.items.size()) + "]";
    if (top.pending) return join(top.path, top.pending->text);
    return top.path.empty() ? "file" : top.path;
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    // "?" and "!" are how the parser says plain and quoted.
    if (tag.empty() || tag == "?" || tag == "!") return;
    complain(place(mark), next_path(), "tags are not supported: remove " + quote(tag));
  }

  void open(const YAML::Mark& mark, const std::string& tag, node::kind what) {
    if (frames_.size() == deepest) throw YAML::ParserException(mark, too_deep);
    refuse_tag(mark, tag);
    frame next{{what, place(mark), {}, false, {}, {}}, {}, {}, {}};
    if (!frames_.empty()) next.path = next_path();
    frames_.push_back(std::move(next));
  }

  void close() {
    auto done = std::move(frames_.back().value);
    frames_.pop_back();
    add(std::move(done));
  }

  void add(node value) {
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (frames_.back().value.is == node::kind::list) {
      frames_.back().value.items.push_back(std::move(value));
    } else if (!frames_.back().pending) {
      add_key(std::move(value));
    } else {
      add_member(std::move(value));
    }
  }

  void add_key(node value) {
    auto& top = frames_.back();
    if (value.is != node::kind::scalar) complain(value.at, next_path(), "a key must be text");
    top.pending = key{std::move(value.text), value.at, value.is == node::kind::scalar};
  }

  void add_member(node value) {
    auto& top = frames_.back();
    const auto path = next_path();
    const auto name = *std::exchange(top.pending, std::nullopt);
    if (!name.usable) return;
    const auto [first, fresh] = top.seen.emplace(name.text, name.at);
    if (fresh) {
      top.value.members.push_back({name.text, name.at, std::move(value)});
    } else {
      const auto line = std::to_string(first->second.line);
      complain(name.at, path, "is given twice, first on line " + line);
    }
  }

  std::vector<problem>& out_;
  std::optional<node> root_;
  position started_at_;
  std::vector<frame> frames_;
};

std::string_view line_of(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

/// Does the last line hold an error the parser met at the end of the text? It gives the line there,
/// but not always the column.
bool is_at_end(const problem& what, position end) {
  return what.at.line > end.line ||
         (what.at.line == end.line &&
          (what.at.column + 1 >= end.column || what.message.starts_with("end of")));
}

/// The parser's complaint, with what is behind it if that can be told.
problem explain(const YAML::Exception& error, std::string_view text) {
  problem result{place(error.mark), "yaml", error.msg};
  const auto end = place(text, text.find_last_not_of(" \t\r\n") + 1);
  const auto line = line_of(text, result.at.line);
  const bool bare_ipv6 = line.find("]:") != std::string_view::npos &&
                         line.find_first_of("\"'") == std::string_view::npos;
  if (dynamic_cast<const YAML::DeepRecursion*>(&error) != nullptr) {
    result.message = too_deep;
  } else if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos) {
    result.message += "; indent with spaces, not tabs";
  } else if (bare_ipv6) {
    result.message += R"(; an IPv6 address needs quotes, as "[fd00::13]:6443")";
  } else if (is_at_end(result, end)) {
    result.at = end;
    result.message += ": the file ends too early";
  }
  return result;
}

}  // namespace

document parse(std::string_view yaml) {
  document result;
  if (yaml.size() > largest_document) {
    result.problems.push_back({{1, 1}, "file", "is larger than 1 MiB"});
    return result;
  }
  if (yaml.starts_with("\xef\xbb\xbf")) yaml.remove_prefix(3);
  if (auto found = find_foreign_byte(yaml)) {
    result.problems.push_back(std::move(*found));
    return result;
  }
  std::istringstream in{std::string(yaml)};
  tree_builder first(result.problems);
  tree_builder second(result.problems);
  try {
    YAML::Parser parser(in);
    if (parser.HandleNextDocument(first)) result.root = first.take_root();
    if (parser.HandleNextDocument(second))
      result.problems.push_back(
          {second.started_at(), "yaml", "a second document starts here: only one is allowed"});
  } catch (const YAML::Exception& error) {
    result.root.reset();
    result.problems.push_back(explain(error, yaml));
    return result;
  }
  if (!result.root || result.root->is == node::kind::empty) {
    result.root.reset();
    result.problems.push_back({{1, 1}, "file", "is empty: `upstreams` is required"});
  }
  return result;
}

std::string_view kind_of(const node& value) {
  switch (value.is) {
    case node::kind::empty:
      return "empty";
    case node::kind::scalar:
      return "text";
    case node::kind::list:
      return "a list";
    case node::kind::mapping:
      return "a mapping";
  }
  return {};
}

std::string join(std::string_view parent, std::string_view key) {
  const auto plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  };
  const bool is_plain =
      !key.empty() && key.size() <= 80 && std::all_of(key.begin(), key.end(), plain);
  const auto shown = is_plain ? std::string(key) : quote(key);
  return parent.empty() ? shown : std::string(parent) + "." + shown;
}

}  // namespace kubelane::config
