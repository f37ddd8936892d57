#pragma once

#include "health/evidence.hpp"

#include <array>
#include <optional>

namespace kubelane::health {

/// Decides when clients that wait for an answer are reason enough to probe before the interval.
///
/// Pure. Bytes may stay unanswered for good reasons (window updates, answers to pings, slow lists),
/// so patience doubles with each probe that was answered well, and an upstream is asked for this
/// reason at most twice per interval. After a minute without a suspicion patience is as configured.
class suspicion {
 public:
  /// `suspect_after`: first patience, > 0. `interval`: between two regular probes, > 0.
  suspicion(milliseconds suspect_after, milliseconds interval);
  void configure(milliseconds suspect_after, milliseconds interval);

  /// Client bytes have waited since `unanswered_since` (epoch: none do), `bytes_up` were sent to it
  /// in all. Returns when the suspicion arose, at most `now`, if the upstream has to be asked now.
  std::optional<time_point> raise(time_point unanswered_since, std::uint64_t bytes_up,
                                  time_point now);

  /// A probe that started at `started` was answered well.
  void answered_well(time_point started, std::uint64_t bytes_up);
  /// A probe failed: the next suspicion counts at once.
  void confirmed();

 private:
  milliseconds patience(std::uint64_t bytes_up, time_point now) const;

  milliseconds suspect_after_;
  milliseconds interval_;
  milliseconds patience_;
  std::array<time_point, 2> raised_{};  // the last two, older first
  bool pending_ = false;                // raised, and no answer since
  time_point answered_{};               // start of the last good answer
  std::uint64_t bytes_then_ = 0;        // sent to it in all when that answer came
};

}  // namespace kubelane::health
