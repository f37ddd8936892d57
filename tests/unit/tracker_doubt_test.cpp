// What is not an upstream's fault, and what is only a doubt.

#include "health/tracker.hpp"
#include "tracked.hpp"

#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;
using test::tracked;

constexpr auto worse_states = {outcome::refused, outcome::host_silent, outcome::wrong_certificate};

// --- this node's own trouble ---

TEST(Tracker, LocalTroubleNeverConvictsButIsNotHidden) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(2, outcome::local_trouble);
  EXPECT_EQ(upstream.current(), state::ready);
  EXPECT_EQ(upstream.probe(outcome::local_trouble, "network unreachable"), tracker::effect::hidden);
  EXPECT_EQ(upstream.current(), state::unknown);
  EXPECT_EQ(upstream.it.about(), matter::local);
  EXPECT_EQ(upstream.it.cause(upstream.now), "network unreachable");
}

TEST(Tracker, APassAfterLocalTroubleCountsAtOnceAndIsNoRise) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(3, outcome::local_trouble);
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.current(), state::ready);
  EXPECT_FALSE(upstream.it.risen());
}

TEST(Tracker, LocalTroubleDoesNotWhitewashAConvictedOne) {
  for (const auto worse : worse_states) {
    tracked upstream;
    upstream.make_ready();
    upstream.probe(worse);
    const auto before = upstream.current();
    upstream.times(5, outcome::local_trouble);
    EXPECT_EQ(upstream.current(), before);
  }
}

TEST(Tracker, AStarvedLoopsTimeOutsAreDiscarded) {
  tracked upstream;
  upstream.make_ready();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(upstream.report({.result = outcome::timed_out, .loop_lag = 251ms}),
              tracker::effect::discarded);
  EXPECT_FALSE(upstream.it.doubtful());
}

TEST(Tracker, AnAlmostPunctualLoopsTimeOutsCount) {
  tracked upstream;
  upstream.make_ready();
  EXPECT_EQ(upstream.report({.result = outcome::timed_out, .loop_lag = 250ms}),
            tracker::effect::first_failure);
}

TEST(Tracker, PassesAndHardEvidenceCountHoweverLateTheLoop) {
  for (const auto result : {outcome::passed, outcome::refused, outcome::host_silent,
                            outcome::not_ready, outcome::lost}) {
    tracked upstream;
    EXPECT_NE(upstream.report({.result = result, .loop_lag = 10s}), tracker::effect::discarded);
  }
}

TEST(Tracker, APermanentlyStarvedNodeStillDetects) {
  tracked upstream;
  upstream.make_ready();
  int probes = 0;
  while (upstream.current() == state::ready && ++probes < 100)
    upstream.report({.result = outcome::timed_out, .loop_lag = 2s});
  EXPECT_EQ(upstream.current(), state::hung);
  EXPECT_EQ(probes, 12) << "three discarded for each that counts";
}

// --- doubt ---

TEST(Tracker, TheFirstSoftFailureIsADoubtThatAPassClears) {
  for (const auto soft : {outcome::timed_out, outcome::lost, outcome::not_ready}) {
    tracked upstream;
    upstream.make_ready();
    upstream.probe(soft);
    EXPECT_TRUE(upstream.it.doubtful());
    upstream.it.heard(upstream.now);
    EXPECT_TRUE(upstream.it.doubtful()) << "a probe has failed: a byte is not enough";
    upstream.probe(outcome::passed);
    EXPECT_FALSE(upstream.it.doubtful());
  }
}

TEST(Tracker, ASuspicionIsADoubtThatAByteClears) {
  tracked upstream;
  upstream.make_ready();
  upstream.it.suspect(upstream.now);
  EXPECT_TRUE(upstream.it.doubtful());
  upstream.it.heard(upstream.now + 1ms);
  EXPECT_FALSE(upstream.it.doubtful());
}

TEST(Tracker, AFailedDialIsADoubtThatAByteClears) {
  tracked upstream;
  upstream.make_ready();
  upstream.it.dial_failed();
  EXPECT_TRUE(upstream.it.doubtful());
  EXPECT_EQ(upstream.current(), state::ready);
  upstream.it.heard(upstream.now);
  EXPECT_FALSE(upstream.it.doubtful());
}

TEST(Tracker, AnUpstreamWhoseStateSaysItAllIsNotDoubtful) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(3, outcome::not_ready);
  EXPECT_FALSE(upstream.it.doubtful());
}

}  // namespace
}  // namespace kubelane::health
