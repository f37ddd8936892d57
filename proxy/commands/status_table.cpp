#include "proxy/commands/status_table.hpp"

#include "health/quorum.hpp"
#include "proxy/commands/history_strip.hpp"

#include <boost/json.hpp>

#include <array>
#include <vector>

namespace kubelane::commands {
namespace {

namespace json = boost::json;

constexpr std::size_t shown_events = 5;
constexpr std::size_t state_column = 2;

std::string text_of(const json::object& from, const char* key) {
  const auto* value = from.if_contains(key);
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_string())
    return value->as_string().empty() ? "-" : printable(std::string(value->as_string()));
  if (value->is_double()) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.1f", value->as_double());
    return number.data();
  }
  return json::serialize(*value);
}

std::string summary(const json::object& status) {
  std::string text = "kubelane " + text_of(status, "version") + ": ";
  text += status.at("ready").as_bool() ? "ready" : "NOT READY";
  if (status.at("panic").as_bool())
    text += ", PANIC: no API server looks usable, every one is tried";
  text += ", " + text_of(status, "connections") + " connections\n";
  const auto* quorum = status.if_contains("quorum");
  if (quorum != nullptr && quorum->is_object()) {
    const auto& view = quorum->as_object();
    const health::quorum::standing now{view.at("members").to_number<int>(),
                                       view.at("ready").to_number<int>()};
    text += "control plane: " + health::quorum::in_words(now) + '\n';
  }
  return text;
}

/// What is out of the ordinary, in words; the first sentence and the quorum's are in the summary.
std::string trouble(const json::object& status) {
  std::string text;
  const auto& sentences = status.at("headline").as_array();
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    const auto& one = sentences[i].as_object();
    auto words = text_of(one, "text");
    if (one.at("tone").as_string() == "good" || words.rfind("etcd", 0) == 0) continue;
    if (!one.at("since").is_null()) words += ", since " + short_time(text_of(one, "since"));
    text += "! " + words + '\n';
  }
  return text;
}

std::vector<row> upstream_rows(const json::object& status) {
  std::vector<row> rows = {
      {"NAME", "ADDRESS", "STATE", "SINCE", "CONNECTIONS", "PROBE MS", "CAUSE"}};
  for (const auto& value : status.at("upstreams").as_array()) {
    const auto& one = value.as_object();
    rows.push_back({text_of(one, "name"), text_of(one, "address"), text_of(one, "state"),
                    short_time(text_of(one, "since")), text_of(one, "connections"),
                    text_of(one, "probe_ms"), text_of(one, "cause")});
  }
  return rows;
}

std::deque<proxy::state_change> events_of(const json::object& status) {
  std::deque<proxy::state_change> events;
  for (const auto& one : status.at("events").as_array())
    if (auto read = proxy::parse_event(json::serialize(one))) events.push_back(std::move(*read));
  return events;
}

std::string strips(const json::object& status) {
  const auto until = proxy::parse_rfc3339(text_of(status, "now"));
  if (!until) return {};
  const auto events = events_of(status);
  std::vector<row> rows = {{"LAST HOUR", "= ready  ~ slow  ! not ready  x down  . not known"}};
  for (const auto& value : status.at("upstreams").as_array()) {
    const auto& one = value.as_object();
    const auto now = health::state_from(text_of(one, "state"));
    const auto since = proxy::parse_rfc3339(text_of(one, "since"));
    if (!now || !since) continue;
    const auto name = text_of(one, "name");
    rows.push_back({name, history_strip(events, name, *now, *since, {.until_ms = *until})});
  }
  return aligned(rows, colour::off, 0);
}

std::vector<row> event_rows(const json::object& status) {
  std::vector<row> rows = {{"LAST CHANGES", "NAME", "STATE", "FROM", "CAUSE"}};
  const auto& events = status.at("events").as_array();
  const auto first = events.size() > shown_events ? events.size() - shown_events : 0;
  for (std::size_t i = first; i < events.size(); ++i) {
    const auto& one = events[i].as_object();
    rows.push_back({short_time(text_of(one, "at")), text_of(one, "upstream"), text_of(one, "to"),
                    text_of(one, "from"), text_of(one, "cause")});
  }
  return rows;
}

}  // namespace

std::string status_table(std::string_view text, colour with) {
  const auto document = json::parse(json::string_view(text.data(), text.size()));
  const auto& status = document.as_object();
  auto result = summary(status) + trouble(status) + '\n' +
                aligned(upstream_rows(status), with, state_column) + '\n' + strips(status);
  const auto events = event_rows(status);
  if (events.size() > 1) result += '\n' + aligned(events, with, state_column);
  return result;
}

}  // namespace kubelane::commands
