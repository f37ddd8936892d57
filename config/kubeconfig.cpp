#include "config/kubeconfig.hpp"

#include "config/document.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace kubelane::config {
namespace {

using parsed = boost::system::result<kubeconfig, std::string>;

parsed failure(std::string words) {
  return {boost::system::in_place_error, std::move(words)};
}

const node* find(const node& in, std::string_view key) {
  const auto same = [&](const member& one) { return one.key == key; };
  const auto found = std::find_if(in.members.begin(), in.members.end(), same);
  return found == in.members.end() ? nullptr : &found->value;
}

std::string text_of(const node& in, std::string_view key) {
  const auto* value = find(in, key);
  return value && value->is == node::kind::scalar ? value->text : std::string();
}

// The entry called `name` of the list `lists[kind]`, and of it the mapping `inner`.
const node* find_named(const node& root, std::string_view list, const std::string& name,
                       std::string_view inner) {
  const auto* entries = find(root, list);
  if (!entries) return nullptr;
  for (const auto& entry : entries->items)
    if (text_of(entry, "name") == name) return find(entry, inner);
  return nullptr;
}

std::optional<unsigned> base64_value(char digit) {
  if (digit >= 'A' && digit <= 'Z') return digit - 'A';
  if (digit >= 'a' && digit <= 'z') return digit - 'a' + 26;
  if (digit >= '0' && digit <= '9') return digit - '0' + 52;
  if (digit == '+') return 62;
  if (digit == '/') return 63;
  return std::nullopt;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string result;
  unsigned bits = 0;
  int count = 0;
  while (!text.empty() && (text.back() == '=' || text.back() == '\n')) text.remove_suffix(1);
  for (const char digit : text) {
    if (digit == '\n' || digit == '\r' || digit == ' ') continue;
    const auto value = base64_value(digit);
    if (!value) return std::nullopt;
    bits = (bits << 6) | *value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    result += static_cast<char>((bits >> count) & 0xff);
  }
  return count == 6 ? std::nullopt : std::optional(result);
}

// Sets `text` from KEY-data, else `file` from KEY. False if the data is no base64.
bool take(const node& from, const std::string& key, const std::string& folder, std::string& text,
          std::string& file) {
  const auto data = text_of(from, key + "-data");
  if (!data.empty()) {
    const auto decoded = decode_base64(data);
    if (decoded) text = *decoded;
    return decoded.has_value();
  }
  const auto name = text_of(from, key);
  if (!name.empty()) file = std::filesystem::path(folder) / name;
  return true;
}

std::string not_base64(std::string_view key) {
  return std::string(key) + "-data is not base64";
}

std::string read_cluster(const node& from, const std::string& folder, kubeconfig& into) {
  into.server = text_of(from, "server");
  into.server_name = text_of(from, "tls-server-name");
  constexpr auto key = "certificate-authority";
  return take(from, key, folder, into.ca_pem, into.ca_file) ? "" : not_base64(key);
}

std::string read_user(const node& from, const std::string& folder, kubeconfig& into) {
  for (const auto* key : {"client-certificate", "client-key"}) {
    const bool is_key = std::string_view(key) == "client-key";
    auto& text = is_key ? into.key_pem : into.certificate_pem;
    auto& file = is_key ? into.key_file : into.certificate_file;
    if (!take(from, key, folder, text, file)) return not_base64(key);
  }
  // client-go: tokenFile takes precedence over token.
  const auto token_file = text_of(from, "tokenFile");
  if (!token_file.empty())
    into.token_file = std::filesystem::path(folder) / token_file;
  else
    into.token = text_of(from, "token");
  into.runs_a_command = find(from, "exec") || find(from, "auth-provider");
  return {};
}

std::string first_problem(const document& of) {
  if (of.problems.empty()) return "is empty";
  const auto& first = of.problems.front();
  return "line " + std::to_string(std::max(first.at.line, 1)) + ": " + first.message;
}

}  // namespace

parsed parse_kubeconfig(std::string_view yaml, const std::string& folder) {
  const auto text = parse(yaml);
  if (!text.root || text.root->is != node::kind::mapping) return failure(first_problem(text));
  const auto& root = *text.root;
  const auto current = text_of(root, "current-context");
  if (current.empty()) return failure("names no current-context");
  const auto* context = find_named(root, "contexts", current, "context");
  if (!context) return failure("has no context " + quote(current));
  const auto cluster_name = text_of(*context, "cluster");
  const auto* cluster = find_named(root, "clusters", cluster_name, "cluster");
  if (!cluster) return failure("has no cluster " + quote(cluster_name));
  kubeconfig result;
  auto wrong = read_cluster(*cluster, folder, result);
  const auto user_name = text_of(*context, "user");
  const auto* user = find_named(root, "users", user_name, "user");
  if (user && wrong.empty()) wrong = read_user(*user, folder, result);
  if (!wrong.empty()) return failure(wrong);
  return result;
}

}  // namespace kubelane::config
