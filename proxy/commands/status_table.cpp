#include "proxy/commands/status_table.hpp"

#include "health/quorum.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace kubelane::commands {
namespace {

namespace json = boost::json;

constexpr std::size_t shown_events = 5;

std::string text_of(const json::object& from, const char* key) {
  const auto* value = from.if_contains(key);
  if (value == nullptr || value->is_null()) return "-";
  if (value->is_string()) return value->as_string().empty() ? "-" : std::string(value->as_string());
  if (value->is_double()) {
    std::array<char, 32> number{};
    std::snprintf(number.data(), number.size(), "%.1f", value->as_double());
    return number.data();
  }
  return json::serialize(*value);
}

/// `2026-01-01T10:20:30.123Z` -> `2026-01-01 10:20:30`; anything else stays.
std::string short_time(std::string time) {
  if (time.size() < 19 || time[10] != 'T') return time;
  time[10] = ' ';
  return time.substr(0, 19);
}

const char* paint(std::string_view state) {
  if (state == "ready") return "\x1b[32m";
  if (state == "unknown" || state == "slow" || state == "shutting_down") return "\x1b[33m";
  return "\x1b[31m";
}

using row = std::vector<std::string>;

std::string aligned(const std::vector<row>& rows, colour with) {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  constexpr std::size_t state_column = 2;
  std::string text;
  for (std::size_t line = 0; line < rows.size(); ++line) {
    std::string out;
    for (std::size_t i = 0; i < rows[line].size(); ++i) {
      const auto& cell = rows[line][i];
      const bool painted = with == colour::on && line > 0 && i == state_column;
      out += painted ? paint(cell) + cell + "\x1b[0m" : cell;
      if (i + 1 < rows[line].size()) out += std::string(widths[i] - cell.size() + 2, ' ');
    }
    text += out + '\n';
  }
  return text;
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
  auto result = summary(status) + '\n' + aligned(upstream_rows(status), with);
  const auto events = event_rows(status);
  if (events.size() > 1) result += '\n' + aligned(events, with);
  return result;
}

}  // namespace kubelane::commands
