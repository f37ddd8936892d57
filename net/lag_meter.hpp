#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace kubelane::net {

/// How late the loop has been, so that its own starvation is never blamed on a server.
///
/// Pure: time is an argument. The loop notes each tick when it comes, and when it should have come.
class lag_meter {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  /// A tick that was due at `due` came at `now`. What is older than a minute is forgotten.
  void note(time_point due, time_point now) {
    const auto lateness = std::max(now - due, duration::zero());
    // An entry that is both older and smaller can never be the worst of any span again.
    while (!worst_.empty() && worst_.back().lateness <= lateness) worst_.pop_back();
    while (!worst_.empty() && now - worst_.front().at > std::chrono::minutes(1))
      worst_.erase(worst_.begin());
    worst_.push_back({now, lateness});
  }

  /// The worst lateness of a tick that came at or after `since`; of a due tick that has not come
  /// yet (`next_due` before `now`) too.
  duration worst_since(time_point since, time_point next_due, time_point now) const {
    const auto pending = std::max(now - next_due, duration::zero());
    for (const auto& seen : worst_)
      if (seen.at >= since) return std::max(seen.lateness, pending);
    return pending;
  }

 private:
  struct entry {
    time_point at;
    duration lateness;
  };
  std::vector<entry> worst_;  // oldest first, lateness falling
};

}  // namespace kubelane::net
