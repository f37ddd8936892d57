#include "tests/support/probe_fixture.hpp"
#include "tests/support/silent_listener.hpp"

namespace kubelane {
namespace {

using health::outcome;
using health::phase;
using namespace std::chrono_literals;

class Probe : public test::probe_fixture {};

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

}  // namespace
}  // namespace kubelane
