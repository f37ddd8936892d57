#pragma once

#include "health/evidence.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace kubelane::proxy {

/// One change of an upstream's state, as remembered for people.
struct state_change {
  std::int64_t at_ms = 0;  ///< Unix time in milliseconds
  std::string upstream;
  health::state from = health::state::unknown;
  health::state to = health::state::unknown;
  std::string cause;
};

/// How many are remembered.
constexpr std::size_t remembered_events = 1000;

/// A line of the file in which they outlive the process, without its end.
std::string to_line(const state_change& change);
/// Nothing if the line is not whole, or no such line at all.
std::optional<state_change> parse_event(std::string_view line);

/// Where the file is.
std::string events_path(const std::string& state_folder);
/// The last `remembered_events` of a file's text, oldest first; lines that are broken are left out.
std::deque<state_change> parse_events(std::string_view text);
/// Those of a file. Nothing if it cannot be read; errno says why.
std::optional<std::deque<state_change>> read_events(const std::string& path);

/// The JSON of /events: `{"events":[...]}`, oldest first.
std::string events_document(const std::deque<state_change>& events);

/// RFC 3339 with milliseconds, UTC.
std::string rfc3339(std::int64_t unix_ms);
/// Of what `rfc3339` makes; nothing for anything else.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);

}  // namespace kubelane::proxy
