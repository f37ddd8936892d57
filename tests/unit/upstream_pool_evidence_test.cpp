// Evidence from dials, what people see, and who is asked when.

#include "pool_driver.hpp"
#include "proxy/upstream_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using health::dial_result;
using test::outcome;
using test::pool_driver;
using test::state;

// --- dials ---

TEST(DialEvidence, ARefusalActsAtOnceAndAsksOnANewConnection) {
  pool_driver it(pool_driver::start::ready);
  it.pool.report_dial(it.id("cp1"), dial_result::refused, it.now);
  it.take();
  EXPECT_EQ(it.state_of("cp1"), state::refused);
  const auto asked = it.seen<probe_now>();
  EXPECT_TRUE(std::any_of(asked.begin(), asked.end(), [&](const probe_now& each) {
    return each.id == it.id("cp1") && each.fresh;
  }));
}

TEST(DialEvidence, ATimeOutStartsAProbeAndIsNoVerdict) {
  pool_driver it(pool_driver::start::ready);
  it.pool.report_dial(it.id("cp1"), dial_result::timed_out, it.now);
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_TRUE(it.look("cp1").doubtful);
  const auto effects = it.pool.take_effects();
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_EQ(std::get<probe_now>(effects.front()).id, it.id("cp1"));
}

TEST(DialEvidence, ManyTimeOutsStartOneProbe) {
  pool_driver it(pool_driver::start::ready);
  for (int i = 0; i < 100; ++i) it.pool.report_dial(it.id("cp1"), dial_result::timed_out, it.now);
  EXPECT_EQ(it.pool.take_effects().size(), 1u);
}

TEST(DialEvidence, AnUnreachableHostIsDead) {
  pool_driver it(pool_driver::start::ready);
  it.pool.report_dial(it.id("cp1"), dial_result::host_silent, it.now);
  EXPECT_EQ(it.state_of("cp1"), state::dead);
}

TEST(DialEvidence, LocalTroubleAndAbandonedDialsSayNothing) {
  pool_driver it(pool_driver::start::ready);
  for (int i = 0; i < 100; ++i) {
    it.pool.report_dial(it.id("cp1"), dial_result::local_trouble, it.now);
    it.pool.report_dial(it.id("cp1"), dial_result::abandoned, it.now);
  }
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_FALSE(it.look("cp1").doubtful);
}

TEST(DialEvidence, AnAcceptedDialToARefusingOneAsksAgain) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::refused);
  it.run(2s);
  it.pool.report_dial(it.id("cp1"), dial_result::connected, it.now);
  EXPECT_EQ(it.pool.take_effects().size(), 1u);
}

// --- what people see ---

TEST(PoolStatus, IsUsableOnlyAfterAnActualAnswer) {
  pool_driver it(pool_driver::start::unprobed);
  EXPECT_FALSE(it.status().usable) << "hope";
  it.run(1s);
  EXPECT_TRUE(it.status().usable);
}

TEST(PoolStatus, IsUsableWhileAnyAnswersWhateverItSays) {
  for (const auto result : {outcome::unauthorized, outcome::not_ready, outcome::shutting_down}) {
    pool_driver it(pool_driver::start::unprobed);
    it.all_answer(result);
    it.run(5s);
    EXPECT_TRUE(it.status().usable) << health::to_string(result);
  }
}

TEST(PoolStatus, IsNotUsableWhenAllAreGone) {
  for (const auto result : {outcome::refused, outcome::host_silent, outcome::timed_out,
                            outcome::wrong_certificate, outcome::local_trouble}) {
    pool_driver it(pool_driver::start::ready);
    it.all_answer(result);
    it.run(10s);
    EXPECT_FALSE(it.status().usable) << health::to_string(result);
  }
}

TEST(PoolStatus, AnUnauthorizedAnswerWithoutIdentityIsNotEnough) {
  pool_driver it(pool_driver::start::unprobed, {}, {"cp1"});
  const auto report = [&](outcome result) {
    return health::probe_report{
        .result = result, .started = it.now, .finished = it.now, .verified = false};
  };
  it.pool.report_probe(it.id("cp1"), report(outcome::unauthorized), it.now);
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_FALSE(it.status().usable);
  it.pool.report_probe(it.id("cp1"), report(outcome::passed), it.now);
  EXPECT_TRUE(it.status().usable);
}

TEST(PoolStatus, PanicIsWhenNoneIsInTheFirstThreeTiers) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::refused);
  it.answers("cp2", outcome::wrong_certificate);
  it.answers("cp3", outcome::not_ready);
  it.run(5s);
  EXPECT_FALSE(it.status().panic);
  it.answers("cp3", outcome::host_silent);
  it.run(5s);
  EXPECT_TRUE(it.status().panic);
}

TEST(PoolStatus, AllDownIsOverWithTheFirstPass) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::refused);
  it.run(5s);
  EXPECT_TRUE(it.status().all_down);
  it.answers("cp1", outcome::passed);
  it.run(1200ms);
  EXPECT_FALSE(it.status().all_down);
}

TEST(PoolStatus, AnEmptyPoolIsDownButDoesNotCrash) {
  pool_driver it(pool_driver::start::unprobed, {}, {});
  it.run(1s);
  EXPECT_TRUE(it.status().all_down);
  EXPECT_TRUE(it.status().panic);
  EXPECT_FALSE(it.status().usable);
  EXPECT_TRUE(it.order().empty());
}

TEST(PoolStatus, ShowsHowLongTheLastAnsweredProbeTook) {
  pool_driver it(pool_driver::start::ready);
  EXPECT_EQ(it.look("cp1").probe, 2ms);
  it.answers("cp1", outcome::timed_out);
  it.run(3s);
  EXPECT_EQ(it.look("cp1").probe, 2ms);
}

TEST(PoolStatus, UnauthorizedIsSaidOnce) {
  pool_driver it(pool_driver::start::unprobed, {}, {"cp1"});
  it.run(2s);
  it.forget();
  it.answers("cp1", outcome::unauthorized);
  it.run(60s);
  ASSERT_EQ(it.seen<upstream_changed>().size(), 1u);
  EXPECT_EQ(it.seen<upstream_changed>().front().from, state::ready);
  EXPECT_EQ(it.seen<upstream_changed>().front().to, state::ready);
  EXPECT_EQ(it.seen<upstream_changed>().front().cause, "401 Unauthorized");
}

TEST(PoolStatus, AnswersThatAlternateAreNotALineEach) {
  pool_driver it(pool_driver::start::ready);
  for (int i = 0; i < 60; ++i) {
    it.answers("cp1", i % 2 ? outcome::passed : outcome::unauthorized);
    it.run(1s);
  }
  EXPECT_LE(it.seen<upstream_changed>().size(), 1u);
}

TEST(PoolStatus, EveryChangeStartsWhereTheLastEnded) {
  pool_driver it(pool_driver::start::unprobed, {}, {"cp1"});
  auto last = state::unknown;
  for (const auto result : {outcome::passed, outcome::timed_out, outcome::refused, outcome::passed,
                            outcome::shutting_down, outcome::not_ready, outcome::passed}) {
    it.answers("cp1", result);
    it.run(20s);
  }
  for (const auto& each : it.seen<upstream_changed>()) {
    EXPECT_EQ(each.from, last);
    last = each.to;
  }
  EXPECT_EQ(last, state::ready);
}

// --- asking ---

TEST(Asking, TheFirstFailureOfOneProbesAllOthersAtOnce) {
  pool_driver it(pool_driver::start::ready);
  const health::probe_report failed{
      .result = outcome::timed_out, .started = it.now, .finished = it.now + 500ms};
  it.now += 500ms;
  it.pool.report_probe(it.id("cp1"), failed, it.now);
  it.take();
  std::set<upstream_id> asked;
  for (const auto& each : it.seen<probe_now>()) asked.insert(each.id);
  EXPECT_EQ(asked, (std::set{it.id("cp2"), it.id("cp3")}));
}

TEST(Asking, ThoseThatFailTooAreNotAskedInStep) {
  pool_driver it(pool_driver::start::ready);
  const auto fail = [&](const char* name) {
    const health::probe_report red{
        .result = outcome::not_ready, .started = it.now, .finished = it.now + 1ms};
    it.now += 1ms;
    it.pool.report_probe(it.id(name), red, it.now);
    it.take();
  };
  fail("cp1");
  it.forget();
  fail("cp2");
  ASSERT_EQ(it.seen<probe_now>().size(), 1u) << "three answers of one moment are one";
  EXPECT_EQ(it.seen<probe_now>().front().id, it.id("cp3"));
}

TEST(Asking, AProbeThatBeganTooEarlyIsFollowedByAnotherAtOnce) {
  pool_driver it(pool_driver::start::ready);
  const auto running_since = it.now;
  it.now += 100ms;
  const health::probe_report failed{
      .result = outcome::refused, .started = it.now, .finished = it.now};
  it.pool.report_probe(it.id("cp1"), failed, it.now);
  const health::probe_report passed{
      .result = outcome::passed, .started = running_since, .finished = it.now};
  EXPECT_EQ(it.pool.report_probe(it.id("cp2"), passed, it.now), 0ms);
  const health::probe_report again{
      .result = outcome::passed, .started = it.now + 1ms, .finished = it.now + 2ms};
  EXPECT_GT(it.pool.report_probe(it.id("cp2"), again, it.now + 2ms), 0ms);
}

TEST(Asking, ADiscardedProbeIsRepeatedAtOnce) {
  pool_driver it(pool_driver::start::ready);
  const health::probe_report late{
      .result = outcome::timed_out, .started = it.now, .finished = it.now, .loop_lag = 400ms};
  EXPECT_EQ(it.pool.report_probe(it.id("cp1"), late, it.now), 0ms);
  EXPECT_FALSE(it.look("cp1").doubtful);
}

TEST(Asking, ASuspicionProbesNow) {
  pool_driver it(pool_driver::start::ready, [] {
    config::config slow;
    slow.health.interval = 60s;
    return slow;
  }());
  it.run(60s);
  it.forget();
  it.send("cp1");
  it.run(401ms);
  ASSERT_EQ(it.seen<probe_now>().size(), 1u);
  EXPECT_EQ(it.seen<probe_now>().front().id, it.id("cp1"));
}

TEST(Asking, ASuspicionThatIsConfirmedIsNotRaisedAgain) {
  config::config slow;
  slow.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, slow);
  it.run(60s);
  it.forget();
  it.answers("cp1", outcome::timed_out);
  it.send("cp1");
  it.run(1300ms);
  const auto asked = it.seen<probe_now>();
  const auto times = std::count_if(asked.begin(), asked.end(),
                                   [&](const probe_now& each) { return each.id == it.id("cp1"); });
  EXPECT_EQ(times, 2) << "by the suspicion, and by the others' answer";
}

TEST(Asking, AnAnswerOfAnotherFromBeforeTheFirstFailureHastensTheNextProbeToo) {
  config::config slow;
  slow.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, slow);
  it.run(60s);
  it.answers("cp1", outcome::timed_out);
  it.send("cp1");
  it.run(450ms);  // it is suspected, and being asked
  const health::probe_report passed{
      .result = outcome::passed, .started = it.now, .finished = it.now};
  it.pool.report_probe(it.id("cp2"), passed, it.now);
  it.reports.clear();
  it.run(1200ms);
  std::vector<health::probe_report> failed;
  for (const auto& [of, report] : it.reports)
    if (of == it.id("cp1")) failed.push_back(report);
  ASSERT_GE(failed.size(), 2u);
  EXPECT_LT(failed[1].started - failed[0].finished, 100ms);
}

TEST(Asking, AByteOrALeavingClientPutsAnEndToTheSuspicion) {
  config::config slow;
  slow.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, slow);
  it.run(60s);
  it.forget();
  it.send("cp1");
  it.run(200ms);
  it.hear("cp1");
  it.send("cp2");
  it.run(200ms);
  it.pool.forget_unanswered(it.id("cp2"));
  it.run(5s);
  EXPECT_EQ(it.seen<probe_now>().size(), 0u);
}

TEST(Asking, AStarvedLoopSuspectsNobody) {
  config::config slow;
  slow.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, slow);
  it.run(60s);
  it.forget();
  it.send("cp1");
  it.now += 5s;
  it.pool.tick(it.now);
  it.hear("cp1");
  it.run(1s);
  EXPECT_EQ(it.seen<probe_now>().size(), 0u);
}

TEST(Asking, WhatAProbesWitnessHearsIsHeard) {
  config::config slow;
  slow.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, slow);
  it.run(60s);
  it.forget();
  for (int i = 0; i < 10; ++i) {
    it.send("cp1");
    it.pool.activity_of(it.id("cp1")).last_heard = it.now;
    it.run(200ms);
  }
  EXPECT_EQ(it.seen<probe_now>().size(), 0u);
}

TEST(Asking, NewSettingsApplyToRunningUpstreams) {
  pool_driver it(pool_driver::start::ready);
  config::config changed;
  changed.health.fall = 1;
  it.pool.configure(changed);
  it.answers("cp1", outcome::not_ready);
  it.run(1100ms);
  EXPECT_EQ(it.state_of("cp1"), state::not_ready);
}

}  // namespace
}  // namespace kubelane::proxy
