#pragma once

#include "proxy/commands/text_table.hpp"
#include "proxy/event.hpp"

#include <cstdint>
#include <deque>
#include <string>

namespace kubelane::commands {

/// Which state changes are wanted.
struct event_choice {
  std::int64_t since_ms = 0;  ///< Unix time in milliseconds; earlier ones are not
  std::string upstream;       ///< empty: of all
};

/// Those that are, in their order. An upstream that is an address of a DNS name (`cp1/10.0.0.1`) is
/// chosen by that name too.
std::deque<proxy::state_change> choose(const std::deque<proxy::state_change>& events,
                                       const event_choice& wanted);

/// One line each, oldest first.
std::string events_table(const std::deque<proxy::state_change>& events, colour with);

}  // namespace kubelane::commands
