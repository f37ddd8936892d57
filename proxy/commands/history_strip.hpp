#pragma once

#include "proxy/event.hpp"

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace kubelane::commands {

/// Which part of the past a strip shows, in how many characters.
struct strip_window {
  std::int64_t until_ms = 0;  ///< Unix time in milliseconds
  std::int64_t cell_ms = 120'000;
  std::size_t cells = 30;
};

/// One character a period, oldest first: the worst that `upstream` was in it. `=` ready, `~` slow
/// or shutting down, `!` not ready or an impostor, `x` down, `.` not known. What it was before its
/// first event is that event's `from`; without an event, `now` since `since_ms`.
std::string history_strip(const std::deque<proxy::state_change>& events, std::string_view upstream,
                          health::state now, std::int64_t since_ms, strip_window over);

}  // namespace kubelane::commands
