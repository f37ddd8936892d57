#include "tests/support/probe_fixture.hpp"

#include <thread>

namespace kubelane {
namespace {

using health::outcome;
using namespace std::chrono_literals;

// What becomes of the connection between and after probes.
class HeldProbe : public test::probe_fixture {};

TEST_F(HeldProbe, ManyProbesAreOneHandshakeAndNoErrorAtTheServer) {
  for (int i = 0; i < 29; ++i) ASSERT_EQ(probe().result, outcome::passed);
  end();
  ASSERT_TRUE(all_gone());
  const auto seen = server.counters();
  EXPECT_EQ(seen.accepted, 1u);
  EXPECT_EQ(seen.handshakes, 1u);
  EXPECT_EQ(seen.probes, 29u);
  EXPECT_EQ(seen.failed_handshakes, 0u);
  EXPECT_EQ(seen.cut, 0u);
}

TEST_F(HeldProbe, EveryThirtiethProbeIsOnAFreshConnectionThatResumes) {
  for (int i = 0; i < 61; ++i) ASSERT_EQ(probe().result, outcome::passed);
  end();
  ASSERT_TRUE(all_gone());
  const auto seen = server.counters();
  EXPECT_EQ(seen.accepted, 3u);
  EXPECT_EQ(seen.handshakes, 1u);
  EXPECT_EQ(seen.resumptions, 2u);
  EXPECT_EQ(seen.failed_handshakes, 0u);
  EXPECT_EQ(seen.cut, 0u);
}

TEST_F(HeldProbe, AProbeThatWasAskedForDoesNotWaitForAFreshConnection) {
  for (int i = 0; i < 30; ++i) ASSERT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(probe(health::probe_schedule::reason::asked).result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 1u);
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 2u);
}

TEST_F(HeldProbe, FailedProbesEndInOrderToo) {
  server.answer("/readyz", demo::failing_readyz({"etcd"}));
  for (int i = 0; i < 5; ++i) ASSERT_EQ(probe().result, outcome::not_ready);
  tls.server_name = "elsewhere.example";
  end();
  identity.reset();
  for (int i = 0; i < 5; ++i) ASSERT_EQ(probe().result, outcome::wrong_certificate);
  end();
  ASSERT_TRUE(all_gone());
  EXPECT_EQ(server.counters().failed_handshakes, 0u) << server.counters().last_failure;
  EXPECT_EQ(server.counters().cut, 0u);
}

TEST_F(HeldProbe, AClosingServerIsAskedOnANewConnectionEachTime) {
  server.change([](demo::apiserver_behaviour& it) { it.close_after_answer = true; });
  for (int i = 0; i < 3; ++i) ASSERT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 3u);
  EXPECT_EQ(server.counters().resumptions, 2u);
}

TEST_F(HeldProbe, AConnectionThatTheServerClosedMeanwhileSaysNothing) {
  probe();
  server.drop_connections(demo::first_act::close);
  EXPECT_EQ(probe().result, outcome::passed);
}

TEST_F(HeldProbe, AHeldConnectionWithoutAListenerIsFoundRefusedWithTheThirtieth) {
  for (int i = 0; i < 30; ++i) ASSERT_EQ(probe().result, outcome::passed);
  server.stop_listening();
  EXPECT_EQ(probe().result, outcome::refused);
}

TEST_F(HeldProbe, AfterATimeOutTheNextConnectionIsFresh) {
  probe();
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 600ms});
  EXPECT_EQ(probe().result, outcome::timed_out);
  server.answer("/readyz", {});
  settings.timeout = 2s;
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 2u);
}

TEST_F(HeldProbe, ALateAnswerOnTheOldConnectionIsHeard) {
  probe();
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 600ms});
  EXPECT_EQ(probe().result, outcome::timed_out);
  EXPECT_EQ(heard, 0);
  EXPECT_TRUE(test::poll_until(
      io, [&] { return heard > 0; }, 2s));
  end();
  ASSERT_TRUE(all_gone());
  EXPECT_EQ(server.counters().cut, 0u);
}

TEST_F(HeldProbe, ALateAnswerOtherThanAPassIsTold) {
  probe();
  settings.timeout = 300ms;
  auto red = demo::failing_readyz({"etcd"});
  red.delay = 600ms;
  server.answer("/readyz", red);
  const auto given_up = probe();
  EXPECT_EQ(given_up.result, outcome::timed_out);
  ASSERT_TRUE(test::poll_until(
      io, [&] { return !late.empty(); }, 2s));
  EXPECT_EQ(late[0].result, outcome::not_ready);
  EXPECT_TRUE(late[0].etcd_failed);
  EXPECT_EQ(late[0].started, given_up.started);
  EXPECT_EQ(late[0].finished, given_up.finished) << "when its failure was known";
}

TEST_F(HeldProbe, ALatePassIsNotTold) {
  probe();
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 600ms});
  probe();
  ASSERT_TRUE(test::poll_until(
      io, [&] { return probes->closed(); }, 2s));
  EXPECT_TRUE(late.empty());
}

TEST_F(HeldProbe, AFreshConnectionIsUsedWhenAskedFor) {
  probe();
  prober().renew();
  probe();
  probe();
  EXPECT_EQ(server.counters().accepted, 2u);
}

TEST_F(HeldProbe, AServerThatAcceptsNoMoreIsFoundOutByAFreshConnection) {
  probe();
  server.stop_listening();
  EXPECT_EQ(probe().result, outcome::passed) << "the held connection still works";
  prober().renew();
  EXPECT_EQ(probe().result, outcome::refused);
}

TEST_F(HeldProbe, AServerThatThawsIsHeardOnTheOldConnection) {
  probe();
  settings.timeout = 300ms;
  server.freeze();
  EXPECT_EQ(probe().result, outcome::timed_out);
  io.restart();
  io.run_for(200ms);
  EXPECT_EQ(heard, 0);
  server.thaw();
  EXPECT_TRUE(test::poll_until(
      io, [&] { return heard > 0; }, 2s));
  EXPECT_TRUE(silent.empty());
}

TEST_F(HeldProbe, AFrozenServersKernelIsNotSilent) {
  probe();
  settings.timeout = 300ms;
  server.freeze();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(probe().result, outcome::timed_out);
  io.restart();
  io.run_for(500ms);
  EXPECT_TRUE(silent.empty());
  server.thaw();
}

TEST_F(HeldProbe, WitnessesAreLimitedToFiveSecondsAndThree) {
  probe();
  settings.timeout = 300ms;
  server.freeze();
  for (int i = 0; i < 6; ++i) probe();
  EXPECT_FALSE(probes->closed());
  EXPECT_TRUE(test::poll_until(
      io, [&] { return probes->closed(); }, 6s));
  server.thaw();
}

TEST_F(HeldProbe, ChangedCredentialsRenewTheConnectionWithAFullHandshake) {
  probe();
  probe();
  folder.write("ca.crt", demo::authority("more").certificate_pem() +
                             test::test_authority().certificate_pem());
  auto now = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) identity->poll(now += 100ms);
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().handshakes, 2u);
  EXPECT_EQ(server.counters().resumptions, 0u);
}

TEST_F(HeldProbe, AnswersWhileThisLoopWasLateCount) {
  probe();
  settings.timeout = 300ms;
  health::probe_report report;
  test::run(io, [&]() -> boost::asio::awaitable<void> {
    auto probing = prober().probe(settings);
    boost::asio::steady_timer block(io, 10ms);
    block.async_wait([](auto) { std::this_thread::sleep_for(600ms); });
    server.answer("/readyz", {.delay = 100ms});
    report = co_await std::move(probing);
  }());
  EXPECT_EQ(report.result, outcome::passed) << report.detail;
}

}  // namespace
}  // namespace kubelane
