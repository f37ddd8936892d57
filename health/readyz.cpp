#include "health/readyz.hpp"

#include <algorithm>

namespace kubelane::health {
namespace {

constexpr std::size_t most_names = 8;
constexpr std::size_t longest_name = 64;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:").find(c) != std::string_view::npos;
}

std::string as_shown(std::string_view name) {
  std::string shown(name.substr(0, longest_name));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return !is_plain(c); }, '?');
  return shown;
}

// The name in `[-]NAME failed: …`, or nothing.
std::string_view failed_name(std::string_view line) {
  constexpr std::string_view mark = "[-]";
  if (!line.starts_with(mark)) return {};
  line.remove_prefix(mark.size());
  return line.substr(0, line.find_first_of(" \t\r"));
}

void add(failed_checks& to, std::string_view name) {
  if (name == "shutdown") to.shutdown = true;
  if (name == "etcd" || name == "etcd-readiness") {
    to.etcd = true;
    name = "etcd";
  }
  const auto shown = as_shown(name);
  if (std::find(to.names.begin(), to.names.end(), shown) != to.names.end()) return;
  if (to.names.size() == most_names)
    to.more = true;
  else
    to.names.push_back(shown);
}

}  // namespace

failed_checks parse_readyz(std::string_view body) {
  failed_checks found;
  while (!body.empty()) {
    const auto end = std::min(body.find('\n'), body.size());
    const auto name = failed_name(body.substr(0, end));
    if (!name.empty()) add(found, name);
    body.remove_prefix(std::min(end + 1, body.size()));
  }
  return found;
}

std::string failed_checks::in_words() const {
  std::string words;
  for (const auto& name : names) words += (words.empty() ? "" : ", ") + name;
  if (more) words += " and more";
  return words;
}

}  // namespace kubelane::health
