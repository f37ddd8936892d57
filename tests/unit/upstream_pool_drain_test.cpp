// Connections that leave a server that still answers, and what is only observed.

#include "pool_driver.hpp"

#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using test::milliseconds;
using test::outcome;
using test::pool_driver;
using test::state;

// --- drains ---

TEST(Drain, A200CallsItOff) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::not_ready);
  ASSERT_TRUE(it.time_to_leave(20s));
  it.answers("cp1", outcome::passed);
  it.run(700ms);
  EXPECT_EQ(it.seen<call_off>().size(), 1u);
}

TEST(Drain, A200BeforeItBeginsPreventsIt) {
  for (const auto result : {outcome::not_ready, outcome::shutting_down, outcome::refused}) {
    pool_driver it(pool_driver::start::ready);
    it.answers("cp1", result);
    it.run(9s);
    it.answers("cp1", outcome::passed);
    it.run(60s);
    EXPECT_EQ(it.closings(), "") << health::to_string(result);
  }
}

TEST(Drain, ThatComesLateWaitsItsFullTimeAgain) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::not_ready);
  it.run(30s);
  it.answers("cp2", outcome::passed);
  it.answers("cp3", outcome::passed);
  const auto took = it.time_to_leave(30s);
  ASSERT_TRUE(took);
  EXPECT_GE(*took, 10s);
  EXPECT_LE(*took, 11500ms);
}

TEST(Drain, OfAServerThatStopsRunsOnWhenItRefuses) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::shutting_down);
  it.run(20s);
  it.answers("cp1", outcome::refused);
  const auto took = it.time_to_leave(30s);
  ASSERT_TRUE(took);
  EXPECT_GE(*took, 10s);
  EXPECT_LE(*took, 11500ms);
}

TEST(Drain, OfAServerThatStopsIsOrderedOnce) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::shutting_down);
  ASSERT_TRUE(it.time_to_leave(60s));
  it.answers("cp1", outcome::refused);
  it.run(30s);
  EXPECT_EQ(it.closings(), "shutdown cp1");
  EXPECT_EQ(it.seen<call_off>().size(), 0u);
}

TEST(Drain, OfARemovedUpstreamBeginsAfterItsTimeIfAnotherAnswers) {
  pool_driver it(pool_driver::start::ready);
  it.reconcile({"cp2", "cp3"});
  const auto took = it.time_to_leave(30s);
  ASSERT_TRUE(took);
  EXPECT_EQ(it.closings(), "removed cp1");
  EXPECT_GE(*took, 9900ms);
  EXPECT_LE(*took, 10200ms);
  EXPECT_EQ(it.seen<drain_connections>().front().spread, 5s);
  EXPECT_EQ(it.seen<drain_connections>().front().busy, 60s);
}

TEST(Drain, OfARemovedUpstreamWaitsUntilAnotherAnswers) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp2", outcome::refused);
  it.answers("cp3", outcome::refused);
  it.run(5s);
  it.reconcile({"cp2", "cp3"});
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
  it.answers("cp2", outcome::passed);
  it.run(20s);
  EXPECT_EQ(it.closings(), "removed cp1");
}

TEST(Drain, OfConnectionsThatAreGoneAlreadyIsNotOrdered) {
  pool_driver it(pool_driver::start::ready);
  it.close("cp1", 5);
  it.answers("cp1", outcome::not_ready);
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
}

// --- etcd ---

TEST(Etcd, AllRedAtOnceForEightSecondsDrainsNothing) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::not_ready, true);
  it.run(8s);
  it.answers("cp1", outcome::passed);
  it.run(1s);
  it.answers("cp2", outcome::passed);
  it.answers("cp3", outcome::passed);
  it.run(30s);
  EXPECT_EQ(it.closings(), "");
}

TEST(Etcd, AnElectionThatTurnsAllRedOneAfterTheOtherDrainsNothing) {
  for (const auto apart : {300ms, 700ms, 1000ms}) {
    for (const auto lasts : {3000ms, 3200ms, 5000ms, 8000ms}) {
      pool_driver it(pool_driver::start::ready);
      const std::string names[] = {"cp1", "cp2", "cp3"};
      for (auto at = 0ms; at < 20s; at += 10ms) {
        for (int i = 0; i < 3; ++i) {
          const bool red = at >= i * apart && at < i * apart + lasts;
          it.answers(names[i], red ? outcome::not_ready : outcome::passed, red);
        }
        it.run(10ms);
      }
      EXPECT_EQ(it.closings(), "") << apart.count() << " " << lasts.count();
    }
  }
}

TEST(Etcd, LostByOneIsDrainedThoughAnotherHasBeenDeadForLong) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp2", outcome::host_silent);
  it.run(30s);
  it.close("cp2", 5);
  it.forget();
  it.answers("cp1", outcome::not_ready, true);
  const auto took = it.time_to_leave(30s);
  ASSERT_TRUE(took);
  EXPECT_LE(*took, 4300ms);
}

TEST(Etcd, LostByTwoOfFiveIsDrainedWhenTheOthersStayGreen) {
  pool_driver it(pool_driver::start::ready, {}, {"cp1", "cp2", "cp3", "cp4", "cp5"});
  it.answers("cp1", outcome::not_ready, true);
  it.answers("cp2", outcome::not_ready, true);
  it.run(10s);
  EXPECT_EQ(it.closings(), "");
  it.run(8s);
  EXPECT_EQ(it.closings(), "etcd cp1, etcd cp2");
}

TEST(Etcd, WithoutADrainTimeStillWaitsForWhatTheOthersSayAfterTwoSeconds) {
  config::config settings;
  settings.drain.etcd = 0s;
  pool_driver it(pool_driver::start::ready, settings);
  it.answers("cp1", outcome::not_ready, true);
  while (!it.look("cp1").doubtful) it.run(1ms);
  while (it.closings().empty()) {
    it.run(10ms);
    ASSERT_FALSE(it.status().resets_withheld);
  }
  EXPECT_TRUE(it.look("cp1").drained);
}

TEST(Etcd, AnotherThatAnswers401CannotSayThatItHasEtcd) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp2", outcome::unauthorized);
  it.answers("cp3", outcome::unauthorized);
  it.run(3s);
  it.answers("cp1", outcome::not_ready, true);
  it.run(60s);
  EXPECT_EQ(it.closings(), "");
}

// --- observe ---

TEST(Observe, SaysOnceWhatItWouldCloseAndClosesNothing) {
  config::config settings;
  settings.failover.mode = config::failover_mode::observe;
  for (const auto result : {outcome::timed_out, outcome::not_ready, outcome::shutting_down}) {
    pool_driver it(pool_driver::start::ready, settings);
    it.answers("cp1", result);
    it.run(5min);
    EXPECT_EQ(it.closings(), "");
    ASSERT_EQ(it.seen<would_close>().size(), 1u) << health::to_string(result);
    EXPECT_EQ(it.seen<would_close>().front().connections, 5u);
    it.answers("cp1", outcome::passed);
    it.run(20s);
    EXPECT_EQ(it.seen<call_off>().size(), 0u);
  }
}

TEST(Panic, ALastResortTakesNobodysConnections) {
  pool_driver it(pool_driver::start::ready, {}, {"cp1", "cp2"});
  it.pool.reconcile({{.name = "cp1",
                      .address = net::parse_endpoint("10.0.0.1", 6443),
                      .zone = "",
                      .member = health::membership::configured},
                     {.name = "cp2",
                      .address = net::parse_endpoint("10.0.0.2", 6443),
                      .zone = "",
                      .member = health::membership::leaving}},
                    it.now);
  it.answers("cp1", outcome::timed_out);
  it.run(60s);
  EXPECT_TRUE(it.status().panic);
  EXPECT_EQ(it.closings(), "");
}

TEST(Panic, ResetsNothingForSoftReasons) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::timed_out);
  it.run(10s);
  it.answers("cp3", outcome::passed);
  while (!it.look("cp3").cause.starts_with("passing, 2 of 3")) it.run(10ms);
  EXPECT_TRUE(it.status().panic) << "it answers, but is not ready yet";
  EXPECT_EQ(it.closings(), "");
}

}  // namespace
}  // namespace kubelane::proxy
