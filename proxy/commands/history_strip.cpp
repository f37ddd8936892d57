#include "proxy/commands/history_strip.hpp"

#include <algorithm>
#include <string_view>

namespace kubelane::commands {
namespace {

using health::state;

constexpr std::string_view from_good_to_bad = ".=~!x";

char mark(state of) {
  switch (of) {
    case state::unknown:
      return '.';
    case state::ready:
      return '=';
    case state::slow:
    case state::shutting_down:
      return '~';
    case state::not_ready:
    case state::impostor:
      return '!';
    case state::refused:
    case state::hung:
    case state::dead:
    case state::unresolved:
      return 'x';
  }
  return '.';
}

/// Marks every cell that [from, until) touches, unless something worse is there.
void paint(std::string& strip, std::int64_t from, std::int64_t until, char what,
           const strip_window& over) {
  const auto begin = over.until_ms - over.cell_ms * static_cast<std::int64_t>(over.cells);
  from = std::max(from, begin);
  until = std::min(until, over.until_ms);
  if (from >= until) return;
  for (auto cell = (from - begin) / over.cell_ms; cell <= (until - 1 - begin) / over.cell_ms;
       ++cell) {
    auto& there = strip[static_cast<std::size_t>(cell)];
    if (from_good_to_bad.find(what) > from_good_to_bad.find(there)) there = what;
  }
}

}  // namespace

std::string history_strip(const std::deque<proxy::state_change>& events, std::string_view upstream,
                          state now, std::int64_t since_ms, strip_window over) {
  std::string strip(over.cells, '.');
  std::optional<state> was;
  std::int64_t from = 0;
  for (const auto& each : events) {
    if (each.upstream != upstream) continue;
    paint(strip, from, each.at_ms, mark(was.value_or(each.from)), over);
    was = each.to;
    from = each.at_ms;
  }
  paint(strip, was ? from : since_ms, over.until_ms, mark(was.value_or(now)), over);
  return strip;
}

}  // namespace kubelane::commands
