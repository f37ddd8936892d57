#include "etcd/clocks.hpp"

#include <algorithm>
#include <ctime>
#include <iomanip>
#include <locale>
#include <sstream>

namespace kubelane::etcd {
namespace {

using namespace std::chrono_literals;

// A Date has whole seconds, so clocks that are a second and a half apart always show it.
constexpr milliseconds worth_saying = 500ms;

milliseconds middle(const clock_offset& of) {
  return (of.low + of.high) / 2;
}

// How far two clocks are apart at the least; positive: `one` is ahead.
milliseconds certain_distance(const clock_offset& one, const clock_offset& other) {
  if (one.low > other.high) return one.low - other.high;
  if (one.high < other.low) return one.high - other.low;
  return 0ms;
}

const clock_offset* clock_of(const member_view& member, const survey& of) {
  if (!member.status) return nullptr;
  for (const auto& one : of.endpoints)
    if (one.url == member.endpoint && one.clock) return &*one.clock;
  return nullptr;
}

}  // namespace

std::optional<clock_offset> read_clock(std::string_view date, milliseconds sent,
                                       milliseconds received) {
  std::istringstream in{std::string(date)};
  in.imbue(std::locale::classic());
  std::tm parts{};
  in >> std::get_time(&parts, "%a, %d %b %Y %H:%M:%S GMT");
  if (in.fail()) return std::nullopt;
  const milliseconds whole = std::chrono::seconds(::timegm(&parts));
  return clock_offset{whole - received, whole + 1s - sent};
}

void compare_clocks(cluster_view& view, const survey& of) {
  std::vector<const clock_offset*> clocks;
  for (const auto& member : view.members)
    if (const auto* one = clock_of(member, of)) clocks.push_back(one);
  if (clocks.size() < 2) return;
  std::sort(clocks.begin(), clocks.end(),
            [](const clock_offset* a, const clock_offset* b) { return middle(*a) < middle(*b); });
  const auto& reference = *clocks[(clocks.size() - 1) / 2];
  for (auto& member : view.members) {
    const auto* one = clock_of(member, of);
    if (one == nullptr) continue;
    const auto apart = certain_distance(*one, reference);
    if (apart >= worth_saying || apart <= -worth_saying) member.clock_apart = apart;
  }
}

}  // namespace kubelane::etcd
