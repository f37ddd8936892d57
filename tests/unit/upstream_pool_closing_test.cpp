// Which connections leave, when, and what keeps them.

#include "pool_driver.hpp"

#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using test::milliseconds;
using test::outcome;
using test::pool_driver;
using test::state;

// --- each state: its tier, and what happens to established connections ---

struct row {
  outcome result;
  bool etcd;
  state health;
  int tier;
  const char* closing;    // nullptr: they stay
  milliseconds earliest;  // counted from the fault; the interval is a second
  milliseconds latest;
  milliseconds spread;
  milliseconds busy;
};

class EveryState : public testing::TestWithParam<row> {};

TEST_P(EveryState, HasItsTierAndItsWayWithEstablishedConnections) {
  const auto& expected = GetParam();
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", expected.result, expected.etcd);
  const auto took = it.time_to_leave(60s);
  EXPECT_EQ(it.state_of("cp1"), expected.health);
  EXPECT_EQ(it.look("cp1").tier, expected.tier);
  if (!expected.closing) {
    EXPECT_FALSE(took);
    return;
  }
  ASSERT_TRUE(took);
  EXPECT_EQ(it.closings(), std::string(expected.closing) + " cp1");
  EXPECT_GE(*took, expected.earliest);
  EXPECT_LE(*took, expected.latest);
  EXPECT_TRUE(it.look("cp1").drained);
  for (const auto& reset : it.seen<reset_connections>()) {
    EXPECT_EQ(reset.spread, expected.spread);
  }
  for (const auto& drain : it.seen<drain_connections>()) {
    EXPECT_EQ(drain.spread, expected.spread);
    EXPECT_EQ(drain.busy, expected.busy);
  }
}

std::string name_of(const testing::TestParamInfo<row>& each) {
  return std::string(health::to_string(each.param.result)) + (each.param.etcd ? "_etcd" : "");
}

INSTANTIATE_TEST_SUITE_P(
    UpstreamPool, EveryState,
    testing::Values(
        row{outcome::passed, false, state::ready, 1, nullptr, {}, {}, {}, {}},
        row{outcome::unauthorized, false, state::ready, 1, nullptr, {}, {}, {}, {}},
        row{outcome::local_trouble, false, state::unknown, 1, nullptr, {}, {}, {}, {}},
        row{outcome::shutting_down, false, state::shutting_down, 2, "shutdown", 30s, 31500ms, 15s,
            60s},
        row{outcome::not_ready, true, state::not_ready, 3, "etcd", 3s, 4300ms, 1500ms, 0s},
        row{outcome::not_ready, false, state::not_ready, 3, "other", 10s, 11300ms, 5s, 60s},
        row{outcome::bad_validity, false, state::not_ready, 3, nullptr, {}, {}, {}, {}},
        row{outcome::lost, false, state::not_ready, 3, nullptr, {}, {}, {}, {}},
        row{outcome::refused, false, state::refused, 4, "refused", 30s, 31500ms, 15s, 60s},
        row{outcome::timed_out, false, state::hung, 4, "hung", 3s, 4200ms, 100ms, {}},
        row{outcome::host_silent, false, state::dead, 4, "dead", 0s, 2700ms, 0ms, {}},
        row{outcome::wrong_certificate, false, state::impostor, 5, nullptr, {}, {}, {}, {}},
        row{outcome::not_tls, false, state::impostor, 5, nullptr, {}, {}, {}, {}}),
    name_of);

TEST(Slow, ConnectionsStayWhileBytesCome) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::timed_out);
  for (int i = 0; i < 600; ++i) {
    for (const auto* name : {"cp1", "cp2", "cp3"}) it.hear(name);
    it.run(100ms);
  }
  EXPECT_EQ(it.state_of("cp1"), state::slow);
  EXPECT_EQ(it.look("cp1").tier, 2);
  EXPECT_EQ(it.closings(), "");
}

// --- hung ---

TEST(Hung, IsResetThreeSecondsAfterItsFirstEvidence) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.send("cp1");  // the first evidence: 300 ms later
  const auto took = it.time_to_leave(10s);
  ASSERT_TRUE(took);
  EXPECT_GE(*took, 3000ms);
  EXPECT_LE(*took, 3450ms);
}

TEST(Hung, IsResetLaterInLargeFleetsAndSpread) {
  config::config fleet;
  fleet.cluster.nodes = 5000;
  fleet.health.interval = 1s;
  pool_driver it(pool_driver::start::ready, fleet);
  it.answers("cp1", outcome::timed_out);
  const auto took = it.time_to_leave(30s);
  ASSERT_TRUE(took);
  EXPECT_GE(*took, 10s);
  EXPECT_LE(*took, 11200ms);
  EXPECT_EQ(it.seen<reset_connections>().front().spread, 5s);
}

TEST(Hung, AByteCallsTheResetOff) {
  config::config fleet;
  fleet.cluster.nodes = 5000;
  pool_driver it(pool_driver::start::ready, fleet);
  it.answers("cp1", outcome::timed_out);
  ASSERT_TRUE(it.time_to_leave(60s));
  it.hear("cp1");
  it.run(200ms);
  EXPECT_EQ(it.state_of("cp1"), state::slow);
  ASSERT_EQ(it.seen<call_off>().size(), 1u);
  EXPECT_EQ(it.seen<call_off>().front().id, it.id("cp1"));
  EXPECT_FALSE(it.look("cp1").drained);
}

TEST(Hung, TheFirstPassCallsTheResetOff) {
  config::config fleet;
  fleet.cluster.nodes = 5000;
  pool_driver it(pool_driver::start::ready, fleet);
  it.answers("cp1", outcome::timed_out);
  ASSERT_TRUE(it.time_to_leave(60s));
  it.answers("cp1", outcome::passed);
  it.run(1s);
  EXPECT_EQ(it.seen<call_off>().size(), 1u);
  EXPECT_NE(it.state_of("cp1"), state::ready);
}

TEST(Hung, AByteBeforeTheResetPreventsIt) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  while (it.state_of("cp1") != state::hung) it.run(10ms);
  it.hear("cp1");
  it.answers("cp1", outcome::passed);
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
  EXPECT_EQ(it.state_of("cp1"), state::ready);
}

TEST(Hung, IsNotResetByALoopThatHasYetToReadWhatCameMeanwhile) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  while (it.state_of("cp1") != state::hung) it.run(10ms);
  it.now += 5s;  // no CPU; due long ago
  it.pool.tick(it.now);
  it.take();
  ASSERT_EQ(it.closings(), "");
  it.hear("cp1");  // then the loop reads
  it.answers("cp1", outcome::passed);
  it.run(10s);
  EXPECT_EQ(it.closings(), "");
}

TEST(Hung, IsResetEvenIfEveryTickIsLate) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  while (it.state_of("cp1") != state::hung) it.run(10ms);
  for (int i = 0; i < 10; ++i) {
    it.now += 1s;
    it.pool.tick(it.now);
    it.take();
  }
  EXPECT_EQ(it.closings(), "hung cp1");
}

TEST(Hung, ConnectionsThatComeLaterAreResetToo) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.run(5s);
  it.close("cp1", 5);
  it.open("cp1", 1);
  it.run(15s);
  EXPECT_EQ(it.closings(), "hung cp1, hung cp1");
}

TEST(Resets, OfOneUpstreamHappenAtMostOncePerHoldDown) {
  config::config settings;
  settings.health.hold_down = 60s;
  pool_driver it(pool_driver::start::ready, settings);
  std::vector<health::time_point> at;
  for (int i = 0; i < 240; ++i) {  // its connections are never closed, and come back anyway
    it.answers("cp1", i % 12 < 8 ? outcome::host_silent : outcome::passed);
    it.run(1s);
    for (const auto& each : it.seen<reset_connections>())
      if (each.id == it.id("cp1")) at.push_back(it.now);
    it.forget();
  }
  EXPECT_GE(at.size(), 2u);
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i] - at[i - 1], 59s);
}

// --- dead ---

TEST(Dead, IsResetAtOnceWhenTheKernelSaysSoAndAnotherAnswers) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.run(2400ms);
  ASSERT_EQ(it.closings(), "");
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.take();
  ASSERT_EQ(it.closings(), "dead cp1") << "probes failed after the others answered";
  EXPECT_EQ(it.seen<reset_connections>().front().spread, 0ms);
}

TEST(Dead, IsAskedAgainAtOnceHoweverRareProbesAre) {
  config::config settings;
  settings.health.interval = 60s;
  pool_driver it(pool_driver::start::ready, settings);
  it.run(60s);
  it.answers("cp1", outcome::timed_out);
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.take();
  EXPECT_EQ(it.closings(), "");
  const auto took = it.time_to_leave(10s);
  ASSERT_TRUE(took);
  EXPECT_LE(*took, 700ms);
}

TEST(Dead, ThatPassesIsAcquitted) {
  pool_driver it(pool_driver::start::ready);
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.run(60s);  // but its probes pass
  EXPECT_EQ(it.closings(), "");
  EXPECT_EQ(it.state_of("cp1"), state::ready);
}

TEST(Dead, ThatIsHeardIsAcquitted) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.run(200ms);
  it.hear("cp1");
  it.run(100ms);
  EXPECT_EQ(it.state_of("cp1"), state::slow);
}

TEST(Dead, ThatPassesButIsHeldDownIsNotReset) {
  pool_driver it(pool_driver::start::ready);
  for (int i = 0; i < 3; ++i) {  // each fall is held down longer
    it.answers("cp1", outcome::host_silent);
    it.run(1500ms);
    it.answers("cp1", outcome::passed);
    it.run(i < 2 ? 12s : 4s);
  }
  ASSERT_TRUE(it.look("cp1").cause.starts_with("passing, held down")) << it.look("cp1").cause;
  it.forget();
  it.run(10s);
  EXPECT_EQ(it.closings(), "");
}

// --- nothing is closed unless another upstream can take it ---

TEST(Corroboration, WithoutItNothingIsReset) {
  for (const auto result : {outcome::timed_out, outcome::host_silent}) {
    pool_driver it(pool_driver::start::ready);
    it.all_answer(result);
    it.run(10min);
    EXPECT_EQ(it.closings(), "");
    EXPECT_TRUE(it.status().resets_withheld);
    EXPECT_TRUE(it.status().panic);
  }
}

TEST(Corroboration, WithoutItNothingIsDrained) {
  for (const auto result : {outcome::not_ready, outcome::shutting_down, outcome::refused}) {
    pool_driver it(pool_driver::start::ready);
    it.all_answer(result);
    it.run(10min);
    EXPECT_EQ(it.closings(), "") << health::to_string(result);
    EXPECT_TRUE(it.status().resets_withheld);
  }
}

TEST(Corroboration, OneUpstreamOnlyIsNeverReset) {
  for (const auto result : {outcome::timed_out, outcome::host_silent, outcome::not_ready,
                            outcome::shutting_down, outcome::refused}) {
    pool_driver it(pool_driver::start::ready, {}, {"cp1"});
    it.answers("cp1", result, true);
    it.run(5min);
    EXPECT_EQ(it.closings(), "") << health::to_string(result);
    EXPECT_EQ(it.order().size(), 1u);
  }
}

TEST(Corroboration, ThatComesLateFiresOnlyAfterTheConvictedFailedAgain) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::timed_out);
  it.run(30s);
  it.answers("cp3", outcome::passed);
  it.run(9s);
  EXPECT_EQ(it.closings(), "hung cp1, hung cp2");
  EXPECT_FALSE(it.status().resets_withheld);
}

TEST(Corroboration, ANetworkThatComesBackResetsNothing) {
  for (const auto result : {outcome::timed_out, outcome::host_silent}) {
    for (const auto dark : {1s, 2s, 4s, 20s}) {
      pool_driver it(pool_driver::start::ready);
      it.all_answer(result);
      it.run(dark);
      it.all_answer(outcome::passed);
      it.run(60s);
      EXPECT_EQ(it.closings(), "");
    }
  }
}

TEST(Corroboration, OfAWitnessThatFailedMeanwhileNeedsFallFailuresMore) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::timed_out);
  it.run(10s);
  it.answers("cp3", outcome::passed);
  it.run(2500ms);
  ASSERT_EQ(it.closings(), "");
  // The others' part of the network is back a moment later.
  it.all_answer(outcome::passed);
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
}

TEST(Corroboration, OfAWitnessThatFailedSecondsBeforeNeedsFallFailuresToo) {
  pool_driver it(pool_driver::start::ready, {}, {"cp1", "cp3"});
  it.answers("cp3", outcome::timed_out);
  while (!it.look("cp3").doubtful) it.run(1ms);
  it.answers("cp3", outcome::passed);
  it.run(3s);
  it.answers("cp1", outcome::timed_out);
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.take();
  const auto took = it.time_to_leave(10s);
  ASSERT_TRUE(took);
  EXPECT_GE(*took, 2s) << "three time-outs, not one";
}

TEST(Corroboration, TwoVerdictsWithinTenSecondsWaitForAnAnswerToTheLaterOne) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.answers("cp2", outcome::timed_out);
  it.run(10s);
  EXPECT_EQ(it.closings(), "hung cp1, hung cp2");
}

TEST(Corroboration, OfTheFirstVerdictDoesNotServeTheSecond) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.answers("cp2", outcome::timed_out);
  while (it.state_of("cp1") != state::hung || it.state_of("cp2") != state::hung) it.run(1ms);
  ASSERT_EQ(it.closings(), "");
  it.pool.report_host_silent(it.id("cp1"), "keep-alive lost", it.now);
  it.take();
  EXPECT_EQ(it.closings(), "") << "cp3 has to answer once more, and cp1 to be silent once more";
  it.run(2s);
  EXPECT_NE(it.closings(), "");
}

TEST(Corroboration, AnAnswerFromBeforeTheEvidenceDoesNotServe) {
  pool_driver it(pool_driver::start::ready);
  for (int i = 0; i < 20; ++i) {  // nobody probes the others any more
    const health::probe_report failed{
        .result = outcome::timed_out, .started = it.now, .finished = it.now + 500ms};
    it.now += 500ms;
    it.pool.report_probe(it.id("cp1"), failed, it.now);
    it.pool.tick(it.now);
    it.take();
  }
  EXPECT_EQ(it.state_of("cp1"), state::hung);
  EXPECT_EQ(it.closings(), "");
}

TEST(Corroboration, OfOneWithoutAnAnswerIsNone) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp2", outcome::local_trouble);  // says nothing from now on, without failing
  it.answers("cp3", outcome::local_trouble);
  it.answers("cp1", outcome::timed_out);
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
}

TEST(Corroboration, UnauthorizedIsAnAnswerToo) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::unauthorized);
  it.run(5s);
  it.answers("cp1", outcome::timed_out);
  it.run(10s);
  EXPECT_EQ(it.closings(), "hung cp1");
}

}  // namespace
}  // namespace kubelane::proxy
