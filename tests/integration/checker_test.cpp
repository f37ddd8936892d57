#include "tests/support/checker_fixture.hpp"
#include "tests/support/silent_listener.hpp"

namespace kubelane {
namespace {

using clock = std::chrono::steady_clock;
using health::outcome;
using namespace std::chrono_literals;

class Checker : public test::checker_fixture {};

TEST_F(Checker, ProbesANewUpstreamAtOnce) {
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  EXPECT_EQ(reports[0].result, outcome::passed) << reports[0].detail;
  EXPECT_EQ(certificates, 1);
}

TEST_F(Checker, AddingTwiceIsAddingOnce) {
  checker().add(cp1, server.address());
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  pass(100ms);
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(Checker, WaitsAsLongAsItIsTold) {
  delay = 100ms;
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(4));
  for (std::size_t i = 1; i < reports.size(); ++i)
    EXPECT_GE(reports[i].started - reports[i - 1].finished, 100ms);
  EXPECT_EQ(server.counters().handshakes, 1u);
}

TEST_F(Checker, TellsHowLateItsOwnLoopWas) {
  lag = 123ms;
  settle();
  EXPECT_EQ(reports[0].loop_lag, 123ms);
}

TEST_F(Checker, AWishIsProbedAtOnce) {
  settle();
  checker().probe_now(cp1);
  EXPECT_TRUE(reported(2, 500ms));
}

TEST_F(Checker, AProbeThatRunsIsSoonEnough) {
  settle();
  server.answer("/readyz", {.delay = 150ms});
  checker().probe_now(cp1);
  pass(50ms);
  checker().probe_now(cp1);
  ASSERT_TRUE(reported(2));
  pass(400ms);
  EXPECT_EQ(reports.size(), 2u);
}

TEST_F(Checker, WishesForAFreshOneDuringAProbeStartOneMoreAfterIt) {
  using connection = health::checker::connection;
  settle();
  server.answer("/readyz", {.delay = 150ms});
  checker().probe_now(cp1);
  pass(50ms);
  const auto evidence = clock::now();
  checker().probe_now(cp1, connection::fresh);
  checker().probe_now(cp1, connection::fresh);
  ASSERT_TRUE(reported(3));
  pass(400ms);
  EXPECT_EQ(reports.size(), 3u);
  EXPECT_LT(reports[1].started, evidence);
  EXPECT_GT(reports[2].started, evidence);
}

TEST_F(Checker, AWishFromTheReportItselfIsFulfilled) {
  on_report = [this] {
    if (reports.size() == 1) running->probe_now(cp1);
  };
  checker().add(cp1, server.address());
  EXPECT_TRUE(reported(2));
}

TEST_F(Checker, PassesUnknownUpstreamsBy) {
  checker().probe_now(77);
  checker().remove(77);
  pass(10ms);
  EXPECT_TRUE(reports.empty());
}

TEST_F(Checker, ACrashIsKnownAtOnce) {
  settle();
  const auto begin = clock::now();
  server.kill();
  ASSERT_TRUE(reported(2));
  EXPECT_EQ(reports[1].result, outcome::refused);
  EXPECT_LT(clock::now() - begin, 500ms);
}

TEST_F(Checker, ALostConnectionIsDialledAgainAtOnceButSecuredLater) {
  settle();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(test::poll_until(io, [&] { return server.counters().accepted == 2; }));
  pass(300ms);
  EXPECT_EQ(server.counters().resumptions, 0u);
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(Checker, AfterALossAWishSecuresAtOnce) {
  settle();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(test::poll_until(io, [&] { return server.counters().accepted == 2; }));
  checker().probe_now(cp1);
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_EQ(reports[1].result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 2u);
  EXPECT_EQ(server.counters().resumptions, 1u);
}

TEST_F(Checker, AfterALossTheNextProbeComesAfterItsPartOfTheInterval) {
  settings.health.interval = 600ms;
  settle();
  const auto begin = clock::now();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(reported(2));
  EXPECT_GE(reports[1].started - begin, 250ms);
  EXPECT_EQ(reports[1].result, outcome::passed);
}

TEST_F(Checker, AConnectionLostTwiceInARowIsProbedAtOnce) {
  settle();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(test::poll_until(io, [&] { return server.counters().accepted == 2; }));
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_EQ(reports[1].result, outcome::passed);
}

TEST_F(Checker, ARefusedUpstreamIsFoundAgain) {
  settle();
  delay = 50ms;
  server.kill();
  ASSERT_TRUE(reported(3));
  EXPECT_EQ(reports.back().result, outcome::refused);
  server.listen();
  EXPECT_TRUE(test::poll_until(io, [&] { return reports.back().result == outcome::passed; }));
}

TEST_F(Checker, OneDeadUpstreamDoesNotDelayAnother) {
  const test::silent_listener dead;
  delay = 50ms;
  checker().add(2, dead.address());
  checker().add(cp1, server.address());
  std::size_t passed = 0;
  on_report = [&] { passed += reports.back().result == outcome::passed ? 1u : 0u; };
  EXPECT_TRUE(test::poll_until(
      io, [&] { return passed >= 3; }, 1s));
}

TEST_F(Checker, ARemovedUpstreamIsLeftInOrder) {
  settle();
  checker().remove(cp1);
  EXPECT_TRUE(test::poll_until(io, [&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
  checker().probe_now(cp1);
  pass(50ms);
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(Checker, ARemovedUpstreamReportsNoMore) {
  server.answer("/readyz", {.delay = 100ms});
  checker().add(cp1, server.address());
  pass(50ms);
  checker().remove(cp1);
  pass(200ms);
  EXPECT_TRUE(reports.empty());
}

TEST_F(Checker, AnUpstreamCanComeBackWhileItLeaves) {
  settle();
  checker().remove(cp1);
  checker().add(cp1, server.address());
  EXPECT_TRUE(reported(2));
}

TEST_F(Checker, RemovingFromTheReportIsAllowed) {
  on_report = [this] { running->remove(cp1); };
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  EXPECT_TRUE(test::poll_until(io, [&] { return server.counters().open == 0; }));
}

}  // namespace
}  // namespace kubelane
