// How an upstream comes back, and when it is probed next.

#include "health/tracker.hpp"

#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;
using company = tracker::company;

testing::AssertionResult is_within(milliseconds value, milliseconds least, milliseconds most) {
  if (value >= least && value <= most) return testing::AssertionSuccess();
  return testing::AssertionFailure() << value.count() << "ms";
}

class risen {
 public:
  explicit risen(tracker_settings settings = {}) : it(settings) { probe(outcome::passed); }

  milliseconds probe(outcome result, std::optional<milliseconds> leaving_in = std::nullopt) {
    const probe_report report{.result = result,
                              .started = now,
                              .finished = now + (result == outcome::timed_out ? 500ms : 2ms)};
    now = report.finished;
    it.record(report, now);
    it.settle(others, now);
    return it.next_delay(leaving_in, random01, now);
  }

  /// Falls, and passes until it may be ready again; when that was, counted from the fall.
  milliseconds outage() {
    probe(outcome::refused);
    const auto fell = now;
    while (it.current() != state::ready) {
      now += 500ms;
      probe(outcome::passed);
    }
    return std::chrono::floor<milliseconds>(now - fell);
  }

  time_point now{1h};
  double random01 = 0.5;
  company others = company::others_in_first_tier;
  tracker it;
};

TEST(TrackerRise, ThreePassesInARowMakeAFallenOneReady) {
  risen upstream;
  upstream.probe(outcome::refused);
  upstream.probe(outcome::passed);
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.current(), state::refused);
  EXPECT_TRUE(upstream.it.recovering());
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.current(), state::ready);
  EXPECT_EQ(upstream.it.risen(), upstream.now);
}

TEST(TrackerRise, HoldsForEveryStateItFellTo) {
  for (const auto result : {outcome::refused, outcome::host_silent, outcome::shutting_down,
                            outcome::bad_validity, outcome::wrong_certificate}) {
    risen upstream;
    upstream.probe(result);
    upstream.probe(outcome::passed);
    upstream.probe(outcome::passed);
    EXPECT_NE(upstream.it.current(), state::ready) << to_string(result);
    upstream.probe(outcome::unauthorized);
    EXPECT_EQ(upstream.it.current(), state::ready) << to_string(result);
  }
}

TEST(TrackerRise, AFailureInBetweenStartsTheCountAgain) {
  risen upstream;
  upstream.probe(outcome::refused);
  upstream.probe(outcome::passed);
  upstream.probe(outcome::passed);
  upstream.probe(outcome::timed_out);
  upstream.probe(outcome::passed);
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.current(), state::refused);
  EXPECT_EQ(upstream.it.cause(upstream.now), "passing, 2 of 3");
}

TEST(TrackerRise, BytesDoNotDisturbIt) {
  risen upstream;
  for (int i = 0; i < 4; ++i) upstream.now += upstream.probe(outcome::timed_out);
  ASSERT_EQ(upstream.it.current(), state::hung);
  for (int i = 0; i < 2; ++i) {
    upstream.probe(outcome::passed);
    upstream.it.heard(upstream.now);
    EXPECT_EQ(upstream.it.current(), state::hung);
  }
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.current(), state::ready);
}

TEST(TrackerRise, APassAcquitsUntilTheSameIsFoundAgain) {
  for (const auto result : {outcome::refused, outcome::host_silent, outcome::shutting_down}) {
    risen upstream;
    upstream.probe(result);
    EXPECT_FALSE(upstream.it.acquitted());
    upstream.probe(outcome::passed);
    EXPECT_TRUE(upstream.it.acquitted());
    upstream.probe(outcome::timed_out);
    EXPECT_TRUE(upstream.it.acquitted()) << "one time-out after a pass is no verdict";
    upstream.probe(result);
    EXPECT_FALSE(upstream.it.acquitted());
  }
}

TEST(TrackerRise, AnAcquittedOneIsHungAgainAfterFallTimeOuts) {
  risen upstream;
  upstream.probe(outcome::host_silent);
  upstream.probe(outcome::passed);
  for (int i = 0; i < 3; ++i) upstream.now += upstream.probe(outcome::timed_out);
  EXPECT_EQ(upstream.it.current(), state::hung);
  EXPECT_EQ(upstream.it.convicted(), upstream.it.since());
}

TEST(TrackerRise, TheFirstFallIsNotHeldDown) {
  risen upstream;
  EXPECT_LE(upstream.outage(), 2s);
}

TEST(TrackerRise, FurtherFallsAreHeldDownTwiceAsLongEachAtMostAMinute) {
  risen upstream;
  upstream.outage();
  for (const auto expected : {10s, 20s, 40s, 60s, 60s}) {
    const auto took = upstream.outage();
    EXPECT_GE(took, expected);
    EXPECT_LE(took, expected + 510ms);
  }
}

TEST(TrackerRise, TheHoldDownIsShown) {
  risen upstream;
  upstream.outage();
  upstream.probe(outcome::refused);
  for (int i = 0; i < 3; ++i) upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.cause(upstream.now), "passing, held down for 10 s");
  EXPECT_EQ(upstream.it.cause(upstream.now + 4500ms), "passing, held down for 6 s");
}

TEST(TrackerRise, FallsOfMoreThanTenMinutesAgoAreForgotten) {
  risen upstream;
  upstream.outage();
  upstream.outage();
  upstream.now += 10min;
  EXPECT_LE(upstream.outage(), 2s);
}

TEST(TrackerRise, TheHoldDownIsVoidIfNothingBetterIsLeft) {
  risen upstream;
  upstream.outage();
  upstream.probe(outcome::refused);
  for (int i = 0; i < 3; ++i) upstream.probe(outcome::passed);
  upstream.it.settle(company::others_in_first_tier, upstream.now + 1s);
  EXPECT_EQ(upstream.it.current(), state::refused);
  upstream.it.settle(company::none_in_first_tier, upstream.now + 1s);
  EXPECT_EQ(upstream.it.current(), state::ready);
}

TEST(TrackerRise, TheHoldDownEndsWithoutWaitingForAProbe) {
  risen upstream;
  upstream.outage();
  upstream.probe(outcome::refused);
  for (int i = 0; i < 3; ++i) upstream.probe(outcome::passed);
  upstream.it.settle(company::others_in_first_tier, upstream.now + 10s);
  EXPECT_EQ(upstream.it.current(), state::ready);
}

TEST(TrackerRise, ALongerHoldDownThanAMinuteIsNotCutShort) {
  risen upstream({.hold_down = 120s});
  upstream.outage();
  EXPECT_GE(upstream.outage(), 120s);
  EXPECT_LE(upstream.outage(), 121s);
}

TEST(TrackerRise, WithoutAHoldDownEveryFallIsLikeTheFirst) {
  risen upstream({.hold_down = 0ms});
  for (int i = 0; i < 5; ++i) EXPECT_LE(upstream.outage(), 2s);
}

TEST(TrackerRise, HidingForLocalTroubleIsNoFall) {
  risen upstream;
  for (int i = 0; i < 3; ++i) upstream.probe(outcome::local_trouble);
  upstream.probe(outcome::passed);
  upstream.outage();
  EXPECT_LE(upstream.now - time_point(1h), 10s) << "the second fall would have been held down";
}

// --- when to probe next ---

TEST(TrackerPace, AfterATimeOut250Milliseconds) {
  for (const double random : {0.0, 0.5, 0.999}) {
    risen upstream;
    upstream.random01 = random;
    EXPECT_TRUE(is_within(upstream.probe(outcome::timed_out), 250ms, 300ms));
  }
}

TEST(TrackerPace, AfterABadAnswer500MillisecondsSoThatThreeAreNotOneCachedResult) {
  for (const double random : {0.0, 0.5, 0.999}) {
    risen upstream;
    upstream.random01 = random;
    EXPECT_TRUE(is_within(upstream.probe(outcome::not_ready), 500ms, 600ms));
  }
}

TEST(TrackerPace, AfterAProbeThatWasCutOffAtOnceThenEvery250Milliseconds) {
  risen upstream({.interval = 5s});
  EXPECT_EQ(upstream.probe(outcome::lost), 0ms);
  EXPECT_TRUE(is_within(upstream.probe(outcome::lost), 250ms, 300ms));
  EXPECT_GE(upstream.probe(outcome::lost), 1s) << "settled";
}

TEST(TrackerPace, WhileRisingEverySecondAtMost) {
  risen upstream({.interval = 15s});
  upstream.probe(outcome::refused);
  EXPECT_LE(upstream.probe(outcome::passed), 1s);
  EXPECT_LE(upstream.probe(outcome::passed), 1s);
  EXPECT_GT(upstream.probe(outcome::passed), 1s);
}

TEST(TrackerPace, WhatIsSettledIsAskedAtTheInterval) {
  for (const auto result : {outcome::refused, outcome::wrong_certificate, outcome::bad_validity,
                            outcome::shutting_down, outcome::host_silent}) {
    risen upstream({.interval = 5s});
    EXPECT_GE(upstream.probe(result), 1s) << to_string(result);
  }
  for (const auto result : {outcome::timed_out, outcome::not_ready}) {
    risen upstream({.interval = 5s});
    milliseconds delay{0};
    for (int i = 0; i < 4; ++i) {
      delay = upstream.probe(result);
      upstream.now += delay;
    }
    EXPECT_GE(delay, 1s) << to_string(result);
  }
}

TEST(TrackerPace, ASilentOneThatIsAboutToBeResetIsAskedAgainSoon) {
  risen upstream({.interval = 15s});
  for (int i = 0; i < 4; ++i) upstream.now += upstream.probe(outcome::timed_out);
  EXPECT_LE(upstream.probe(outcome::timed_out, 1s), 300ms);
}

TEST(TrackerPace, ADrainIsWatchedDenserTowardsItsEnd) {
  risen upstream({.interval = 15s});
  EXPECT_TRUE(is_within(upstream.probe(outcome::shutting_down, 30s), 5s, 15s));
  EXPECT_TRUE(is_within(upstream.probe(outcome::shutting_down, 8s), 2s, 2400ms));
  EXPECT_TRUE(is_within(upstream.probe(outcome::shutting_down, 1s), 500ms, 600ms));
}

TEST(TrackerPace, TheIntervalIsJitteredByTwentyPercentAndNeverExceeded) {
  for (const double random : {0.0, 0.25, 0.5, 0.75, 0.999}) {
    risen upstream({.interval = 10s});
    upstream.random01 = random;
    upstream.now += upstream.probe(outcome::passed);
    EXPECT_TRUE(is_within(upstream.probe(outcome::passed), 8s, 10s));
  }
}

TEST(TrackerPace, TheFirstPauseIsARandomPartOfTheInterval) {
  for (const double random : {0.1, 0.5, 0.9}) {
    tracker it({.interval = 10s});
    it.record({.result = outcome::passed, .started = time_point(1h), .finished = time_point(1h)},
              time_point(1h));
    const auto delay = it.next_delay(std::nullopt, random, time_point(1h));
    EXPECT_NEAR(static_cast<double>(delay.count()), random * 10'000, 1);
  }
}

TEST(TrackerPace, AProbeAskedForInBetweenDoesNotMoveTheRegularOnes) {
  risen upstream({.interval = 10s});
  upstream.now += upstream.probe(outcome::passed);
  const auto next = upstream.now + upstream.probe(outcome::passed) + 2ms;
  upstream.now += 3s;
  EXPECT_EQ(upstream.now + upstream.probe(outcome::passed) + 2ms, next);
}

TEST(TrackerPace, LocalTroubleIsAskedAboutEverySecondAtMost) {
  risen upstream({.interval = 15s});
  EXPECT_LE(upstream.probe(outcome::local_trouble), 1s);
}

}  // namespace
}  // namespace kubelane::health
