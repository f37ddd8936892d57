#pragma once

#include "health/tracker.hpp"

#include <string>

namespace kubelane::test {

using namespace std::chrono_literals;
using health::outcome;
using health::tracker;

/// A tracker and its time. Each probe takes as long as its outcome usually does; the next one
/// begins 250 ms after a time-out, 500 ms after anything else.
class tracked {
 public:
  explicit tracked(health::tracker_settings settings = {}) : it(settings) {}

  tracker::effect probe(outcome result, std::string detail = {}) {
    return report({.result = result, .detail = std::move(detail)});
  }

  tracker::effect report(health::probe_report what) {
    const bool times_out = what.result == outcome::timed_out;
    what.started = now;
    now += times_out ? 500ms : 2ms;
    what.finished = now;
    const auto taken = it.record(what, now);
    it.settle(alone ? tracker::company::none_in_first_tier : tracker::company::others_in_first_tier,
              now);
    now += times_out ? 250ms : 500ms;
    return taken;
  }

  void times(int count, outcome result) {
    for (int i = 0; i < count; ++i) probe(result);
  }

  void make_ready() { probe(outcome::passed); }

  health::state current() const { return it.current(); }

  health::time_point now{1h};
  bool alone = false;
  tracker it;
};

}  // namespace kubelane::test
