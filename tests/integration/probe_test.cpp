#include "health/probe.hpp"

#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/run.hpp"
#include "tests/support/silent_listener.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using health::outcome;
using health::phase;
using health::probe_report;
using namespace std::chrono_literals;

class Probe : public testing::Test {
 protected:
  Probe() {
    tls.ca_file = folder.write("ca.crt", test::test_authority().certificate_pem());
    settings.timeout = 2s;
  }

  ~Probe() override { end(); }

  health::prober& prober() {
    if (!identity) identity.emplace(tls);
    if (!probes) {
      health::probe_events events;
      events.on_host_silent = [this](const std::string& why) { silent.push_back(why); };
      events.on_heard = [this] { ++heard; };
      events.on_late_answer = [this](const probe_report& report) { late.push_back(report); };
      events.on_certificate = [this](auto expiry) { expiries.push_back(expiry); };
      probes = std::make_unique<health::prober>(
          io.get_executor(), address.value_or(server.address()), *identity, reserve,
          std::move(events), [](std::exception_ptr what) { std::rethrow_exception(what); });
    }
    return *probes;
  }

  probe_report probe() {
    probe_report result;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto probing = prober().probe(settings);
      result = co_await std::move(probing);
    }());
    return result;
  }

  // Ends in order.
  void end() {
    if (!probes) return;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto closing = probes->close();
      co_await std::move(closing);
    }());
    probes.reset();
  }

  void answer(unsigned status, const std::string& body) {
    server.answer("/readyz", {.status = status, .body = body});
  }

  bool all_gone() {
    return test::poll_until([&] { return server.counters().open == 0; });
  }

  asio::io_context io;
  test::temporary_folder folder;
  test::fake_apiserver server;
  config::probe_tls tls;
  health::probe_settings settings;
  std::optional<net::endpoint> address;  // instead of the server's
  std::optional<net::credentials> identity;
  net::descriptor_reserve reserve;
  std::unique_ptr<health::prober> probes;
  std::vector<std::string> silent;
  std::vector<probe_report> late;
  std::vector<std::chrono::system_clock::time_point> expiries;
  int heard = 0;
};

TEST_F(Probe, PassesOnTwoHundred) {
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::passed) << report.detail;
  EXPECT_EQ(report.reached, phase::answer);
  EXPECT_TRUE(report.verified);
  EXPECT_EQ(report.detail, "");
  EXPECT_LE(report.started, report.finished);
}

TEST_F(Probe, SaysWhoItIs) {
  probe();
  EXPECT_EQ(server.counters().last_user_agent, "kubelane/" KUBELANE_VERSION);
  EXPECT_EQ(server.counters().last_host, "kubernetes.default.svc");
  EXPECT_EQ(server.counters().last_authorization, "");
}

TEST_F(Probe, AsksForTheConfiguredPath) {
  settings.path = "/livez";
  answer(500, "");
  EXPECT_EQ(probe().result, outcome::passed);
}

TEST_F(Probe, UnauthorizedIsAlive) {
  answer(401, "");
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::unauthorized);
  EXPECT_EQ(report.detail, "401 Unauthorized");
}

TEST_F(Probe, NamesTheChecksThatFailed) {
  server.answer("/readyz", demo::failing_readyz({"etcd", "poststarthook/x"}));
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::not_ready);
  EXPECT_EQ(report.detail, "etcd, poststarthook/x");
  EXPECT_TRUE(report.etcd_failed);
}

TEST_F(Probe, NoticesAShutdown) {
  server.answer("/readyz", demo::failing_readyz({"shutdown"}));
  EXPECT_EQ(probe().result, outcome::shutting_down);
}

TEST_F(Probe, RefusedIsRefused) {
  address = test::closed_port();
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::refused);
  EXPECT_EQ(report.reached, phase::connect);
}

TEST_F(Probe, AConnectWithoutAnAnswerTimesOut) {
  settings.timeout = 300ms;
  const test::silent_listener listener;
  address = listener.address();
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::timed_out);
  EXPECT_EQ(report.reached, phase::connect);
  EXPECT_FALSE(report.heard);
}

TEST_F(Probe, AnUnreachableNetworkIsLocalTrouble) {
  address = net::parse_endpoint("255.255.255.255:6443", 0);
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::local_trouble);
  EXPECT_EQ(report.detail, "network unreachable");
}

TEST_F(Probe, AFrozenServerTimesOutInTheHandshake) {
  settings.timeout = 300ms;
  server.freeze();
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::timed_out);
  EXPECT_EQ(report.reached, phase::tls);
  EXPECT_FALSE(report.heard);
  server.thaw();
}

TEST_F(Probe, AServerThatShakesHandsButAnswersLateWasHeard) {
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 10s});
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::timed_out);
  EXPECT_EQ(report.reached, phase::answer);
  EXPECT_TRUE(report.heard);
}

TEST_F(Probe, AResetBeforeTheAnswerIsLost) {
  server.change([](demo::apiserver_behaviour& it) { it.act = demo::first_act::reset; });
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::lost);
  EXPECT_EQ(report.reached, phase::tls);
}

TEST_F(Probe, AnEndBeforeTheAnswerIsLost) {
  server.change([](demo::apiserver_behaviour& it) { it.act = demo::first_act::close; });
  EXPECT_EQ(probe().result, outcome::lost);
}

TEST_F(Probe, TellsAnImpostor) {
  const demo::authority other("another CA");
  server.use(test::server_tls(other, demo::apiserver_certificate("cp1")));
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::wrong_certificate);
  EXPECT_EQ(report.detail, "certificate signed by another CA than ours (another CA)");
  EXPECT_EQ(server.counters().requests, 0u);
}

TEST_F(Probe, TellsAnExpiredCertificate) {
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.valid_until = -10s;
  server.use(test::server_tls(test::test_authority(), wanted));
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::bad_validity);
  EXPECT_TRUE(report.detail.starts_with("certificate expired ")) << report.detail;
  ASSERT_EQ(expiries.size(), 1u);
}

TEST_F(Probe, TellsPlainHttp) {
  server.change([](demo::apiserver_behaviour& it) { it.plain_http = true; });
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::not_tls);
  EXPECT_EQ(report.detail, "the answer is not TLS");
}

TEST_F(Probe, ARequiredClientCertificateCountsAsUnauthorized) {
  auto requiring = test::test_tls();
  requiring.client = net::client_certificate::required;
  requiring.client_ca_pem = test::test_authority().certificate_pem();
  server.use(requiring);
  EXPECT_EQ(probe().result, outcome::unauthorized);
}

TEST_F(Probe, ShowsItsClientCertificate) {
  auto asking = test::test_tls();
  asking.client = net::client_certificate::required;
  asking.client_ca_pem = test::test_authority().certificate_pem();
  server.use(asking);
  const auto own = test::test_authority().issue({.common_name = "worker-1", .names = {}});
  tls.client_cert_file = folder.write("client.crt", own.certificate_pem);
  tls.client_key_file = folder.write("client.key", own.key_pem);
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().last_client, "worker-1");
}

TEST_F(Probe, SendsTheTokenOfAKubeconfig) {
  tls.kubeconfig = folder.write("kubelet.conf",
                                "clusters: [{name: c, cluster: {certificate-authority: ca.crt}}]\n"
                                "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                "current-context: x\nusers: [{name: u, user: {token: abc}}]\n");
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().last_authorization, "Bearer abc");
}

TEST_F(Probe, WithoutACaItPassesUnverifiedAndSaysSo) {
  tls.ca_file = folder / "later.crt";
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::passed);
  EXPECT_FALSE(report.verified);
  EXPECT_EQ(report.detail, "no CA file yet");
}

TEST_F(Probe, TellsWhenTheCertificateEnds) {
  probe();
  ASSERT_EQ(expiries.size(), 1u);
  EXPECT_GT(expiries[0], std::chrono::system_clock::now() + 23h);
}

TEST_F(Probe, AsksAnIpv6Upstream) {
  auto options = test::apiserver_options("cp6");
  options.listen = *net::parse_endpoint("[::1]:6443", 0);
  options.listen = net::endpoint(options.listen.address(), 0);
  std::optional<test::fake_apiserver> six;
  try {
    six.emplace(options);
  } catch (const std::exception& missing) {
    GTEST_SKIP() << "no IPv6 here: " << missing.what();
  }
  address = six->address();
  EXPECT_EQ(probe().result, outcome::passed);
  end();
}

TEST_F(Probe, TcpModeOnlyConnects) {
  settings.mode = config::probe_mode::tcp;
  server.freeze();
  const auto report = probe();
  EXPECT_EQ(report.result, outcome::passed);
  EXPECT_EQ(report.reached, phase::connect);
  server.thaw();
  address = test::closed_port();
  end();
  EXPECT_EQ(probe().result, outcome::refused);
}

TEST_F(Probe, ManyProbesAreOneHandshakeAndNoErrorAtTheServer) {
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

TEST_F(Probe, EveryThirtiethProbeIsOnAFreshConnectionThatResumes) {
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

TEST_F(Probe, FailedProbesEndInOrderToo) {
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

TEST_F(Probe, AClosingServerIsAskedOnANewConnectionEachTime) {
  server.change([](demo::apiserver_behaviour& it) { it.close_after_answer = true; });
  for (int i = 0; i < 3; ++i) ASSERT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 3u);
  EXPECT_EQ(server.counters().resumptions, 2u);
}

TEST_F(Probe, AConnectionThatTheServerClosedMeanwhileSaysNothing) {
  probe();
  server.drop_connections(demo::first_act::close);
  EXPECT_EQ(probe().result, outcome::passed);
}

TEST_F(Probe, AHeldConnectionWithoutAListenerIsFoundRefusedWithTheThirtieth) {
  for (int i = 0; i < 30; ++i) ASSERT_EQ(probe().result, outcome::passed);
  server.stop_listening();
  EXPECT_EQ(probe().result, outcome::refused);
}

TEST_F(Probe, AfterATimeOutTheNextConnectionIsFresh) {
  probe();
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 600ms});
  EXPECT_EQ(probe().result, outcome::timed_out);
  server.answer("/readyz", {});
  settings.timeout = 2s;
  EXPECT_EQ(probe().result, outcome::passed);
  EXPECT_EQ(server.counters().accepted, 2u);
}

TEST_F(Probe, ALateAnswerOnTheOldConnectionIsHeard) {
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

TEST_F(Probe, ALateAnswerOtherThanAPassIsTold) {
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

TEST_F(Probe, ALatePassIsNotTold) {
  probe();
  settings.timeout = 300ms;
  server.answer("/readyz", {.delay = 600ms});
  probe();
  ASSERT_TRUE(test::poll_until(
      io, [&] { return probes->closed(); }, 2s));
  EXPECT_TRUE(late.empty());
}

TEST_F(Probe, AFreshConnectionIsUsedWhenAskedFor) {
  probe();
  prober().renew();
  probe();
  probe();
  EXPECT_EQ(server.counters().accepted, 2u);
}

TEST_F(Probe, AServerThatAcceptsNoMoreIsFoundOutByAFreshConnection) {
  probe();
  server.stop_listening();
  EXPECT_EQ(probe().result, outcome::passed) << "the held connection still works";
  prober().renew();
  EXPECT_EQ(probe().result, outcome::refused);
}

TEST_F(Probe, AServerThatThawsIsHeardOnTheOldConnection) {
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

TEST_F(Probe, AFrozenServersKernelIsNotSilent) {
  probe();
  settings.timeout = 300ms;
  server.freeze();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(probe().result, outcome::timed_out);
  io.restart();
  io.run_for(500ms);
  EXPECT_TRUE(silent.empty());
  server.thaw();
}

TEST_F(Probe, WitnessesAreLimitedToFiveSecondsAndThree) {
  probe();
  settings.timeout = 300ms;
  server.freeze();
  for (int i = 0; i < 6; ++i) probe();
  EXPECT_FALSE(probes->closed());
  EXPECT_TRUE(test::poll_until(
      io, [&] { return probes->closed(); }, 6s));
  server.thaw();
}

TEST_F(Probe, ChangedCredentialsRenewTheConnectionWithAFullHandshake) {
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

TEST_F(Probe, AnswersWhileThisLoopWasLateCount) {
  probe();
  settings.timeout = 300ms;
  probe_report report;
  test::run(io, [&]() -> asio::awaitable<void> {
    auto probing = prober().probe(settings);
    asio::steady_timer block(io, 10ms);
    block.async_wait([](auto) { std::this_thread::sleep_for(600ms); });
    server.answer("/readyz", {.delay = 100ms});
    report = co_await std::move(probing);
  }());
  EXPECT_EQ(report.result, outcome::passed) << report.detail;
}

}  // namespace
}  // namespace kubelane
