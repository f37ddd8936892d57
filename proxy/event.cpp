#include "proxy/event.hpp"

#include "proxy/event_json.hpp"
#include "telemetry/line_file.hpp"

#include <array>
#include <cstdio>
#include <ctime>

namespace kubelane::proxy {
namespace {

namespace json = boost::json;

constexpr std::size_t longest_line = 4096;

json::object event_json(const state_change& change) {
  json::object result;
  result["at"] = rfc3339(change.at_ms);
  result["upstream"] = change.upstream;
  result["from"] = health::to_string(change.from);
  result["to"] = health::to_string(change.to);
  result["cause"] = change.cause;
  return result;
}

const json::string* text_in(const json::object& from, const char* key) {
  const auto* value = from.if_contains(key);
  return value == nullptr ? nullptr : value->if_string();
}

}  // namespace

std::string to_line(const state_change& change) {
  return json::serialize(event_json(change));
}

std::optional<state_change> parse_event(std::string_view line) {
  if (line.size() > longest_line) return std::nullopt;
  boost::system::error_code error;
  const auto parsed = json::parse(json::string_view(line.data(), line.size()), error);
  if (error || !parsed.is_object()) return std::nullopt;
  const auto& object = parsed.as_object();
  const auto* const at = text_in(object, "at");
  const auto* const upstream = text_in(object, "upstream");
  const auto* const from = text_in(object, "from");
  const auto* const to = text_in(object, "to");
  const auto* const cause = text_in(object, "cause");
  if (!at || !upstream || !from || !to || !cause) return std::nullopt;
  const auto at_ms = parse_rfc3339({at->data(), at->size()});
  const auto was = health::state_from({from->data(), from->size()});
  const auto is = health::state_from({to->data(), to->size()});
  if (!at_ms || !was || !is) return std::nullopt;
  return state_change{*at_ms, std::string(*upstream), *was, *is, std::string(*cause)};
}

std::string events_path(const std::string& state_folder) {
  return state_folder + "/events.jsonl";
}

std::deque<state_change> parse_events(std::string_view text) {
  std::deque<state_change> events;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (auto one = parse_event(text.substr(0, end))) events.push_back(std::move(*one));
    if (events.size() > remembered_events) events.pop_front();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return events;
}

std::optional<std::deque<state_change>> read_events(const std::string& path) {
  const auto text = telemetry::read_text(path);
  if (!text) return std::nullopt;
  return parse_events(*text);
}

json::array events_json(const std::deque<state_change>& events, std::size_t count) {
  json::array result;
  const auto first = events.size() > count ? events.size() - count : 0;
  result.reserve(events.size() - first);
  for (auto i = first; i < events.size(); ++i) result.push_back(event_json(events[i]));
  return result;
}

std::string events_document(const std::deque<state_change>& events) {
  json::object result;
  result["events"] = events_json(events, events.size());
  return json::serialize(result) + "\n";
}

std::string rfc3339(std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + length, text.size() - length, ".%03dZ",
                static_cast<int>(unix_ms % 1000));
  return text.data();
}

std::optional<std::int64_t> parse_rfc3339(std::string_view text) {
  const std::string whole(text);
  std::tm parts{};
  int millis = 0;
  int length = 0;
  const int found =
      std::sscanf(whole.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &millis, &length);
  if (found != 7 || static_cast<std::size_t>(length) != whole.size()) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const auto result = static_cast<std::int64_t>(::timegm(&parts)) * 1000 + millis;
  if (rfc3339(result) != whole) return std::nullopt;  // as the 31st of February
  return result;
}

}  // namespace kubelane::proxy
