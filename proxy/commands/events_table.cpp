#include "proxy/commands/events_table.hpp"

#include <algorithm>
#include <iterator>

namespace kubelane::commands {

std::deque<proxy::state_change> choose(const std::deque<proxy::state_change>& events,
                                       const event_choice& wanted) {
  std::deque<proxy::state_change> chosen;
  const auto& name = wanted.upstream;
  std::copy_if(events.begin(), events.end(), std::back_inserter(chosen),
               [&](const proxy::state_change& each) {
                 return each.at_ms >= wanted.since_ms && (name.empty() || each.upstream == name ||
                                                          each.upstream.rfind(name + "/", 0) == 0);
               });
  return chosen;
}

std::string events_table(const std::deque<proxy::state_change>& events, colour with) {
  if (events.empty()) return "no state changes\n";
  std::vector<row> rows = {{"WHEN (UTC)", "NAME", "STATE", "FROM", "CAUSE"}};
  for (const auto& one : events)
    rows.push_back({short_time(proxy::rfc3339(one.at_ms)), printable(one.upstream),
                    health::to_string(one.to), health::to_string(one.from),
                    one.cause.empty() ? "-" : printable(one.cause)});
  return aligned(rows, with, 2);
}

}  // namespace kubelane::commands
