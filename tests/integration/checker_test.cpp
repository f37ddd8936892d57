#include "health/checker.hpp"

#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/silent_listener.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;
using health::checker_key;
using health::outcome;
using health::probe_report;
using namespace std::chrono_literals;

constexpr checker_key cp1 = 1;

class Checker : public testing::Test {
 protected:
  Checker() {
    settings.health.tls.ca_file = folder.write("ca.crt", test::test_authority().certificate_pem());
    settings.health.timeout = 2s;
    settings.health.interval = 10s;
  }

  ~Checker() override { stop(); }

  health::checker& checker() {
    if (running) return *running;
    health::checker_events events;
    events.on_report = [this](checker_key, const probe_report& report) {
      reports.push_back(report);
      if (on_report) on_report();
      return delay;
    };
    events.on_host_silent = [this](checker_key, const std::string&) { ++silent; };
    events.on_heard = [this](checker_key) { ++heard; };
    events.on_certificate = [this](checker_key, auto) { ++certificates; };
    running = std::make_unique<health::checker>(
        io, settings, std::move(events), [this] { return random; },
        [this](clock::time_point) { return lag; });
    return *running;
  }

  bool reported(std::size_t count, std::chrono::milliseconds limit = 3s) {
    return test::poll_until(
        io, [&] { return reports.size() >= count; }, limit);
  }

  void pass(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }

  bool stop() {
    if (!running) return true;
    running->stop();
    const bool stopped = test::poll_until(
        io, [&] { return running->stopped(); }, 2s);
    running.reset();
    return stopped;
  }

  // An upstream with a held connection whose next probe is an hour away.
  void settle() {
    delay = 1h;
    checker().add(cp1, server.address());
    ASSERT_TRUE(reported(1));
    ASSERT_EQ(reports[0].result, outcome::passed) << reports[0].detail;
  }

  asio::io_context io;
  test::temporary_folder folder;
  test::fake_apiserver server;
  config::config settings;
  std::unique_ptr<health::checker> running;
  std::vector<probe_report> reports;
  std::function<void()> on_report;
  std::chrono::milliseconds delay = 1h;
  std::chrono::milliseconds lag{0};
  double random = 0.5;
  int silent = 0;
  int heard = 0;
  int certificates = 0;
};

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

TEST_F(Checker, WishesDuringAProbeStartOneMoreAfterIt) {
  settle();
  server.answer("/readyz", {.delay = 150ms});
  checker().probe_now(cp1);
  pass(50ms);
  const auto evidence = clock::now();
  checker().probe_now(cp1);
  checker().probe_now(cp1);
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

TEST_F(Checker, StopsInOrder) {
  settle();
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
  EXPECT_EQ(server.counters().failed_handshakes, 0u);
}

TEST_F(Checker, AStopLetsARunningProbeFinish) {
  settle();
  server.answer("/readyz", {.delay = 150ms});
  checker().probe_now(cp1);
  pass(50ms);
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(Checker, AStopBetweenDialAndHandshakeLeavesNoBrokenHandshake) {
  settle();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(test::poll_until(io, [&] { return server.counters().accepted == 2; }));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().failed_handshakes, 0u);
}

TEST_F(Checker, AFrozenServerDoesNotHoldAStopUp) {
  settings.health.timeout = 5s;
  server.freeze();
  checker().add(cp1, server.address());
  pass(50ms);
  const auto begin = clock::now();
  EXPECT_TRUE(stop());
  EXPECT_LT(clock::now() - begin, 1s);
  server.thaw();
}

TEST_F(Checker, TenQuickWorkersLeaveNoTraceInTheServersLog) {
  delay = 20ms;
  for (checker_key key = 1; key <= 10; ++key) checker().add(key, server.address());
  ASSERT_TRUE(reported(700, 20s));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  const auto seen = server.counters();
  EXPECT_EQ(seen.failed_handshakes, 0u) << seen.last_failure;
  EXPECT_EQ(seen.cut, 0u);
  EXPECT_EQ(seen.handshakes, 10u);
  EXPECT_GE(seen.resumptions, 10u);
}

TEST_F(Checker, ACaThatAppearsIsUsedWithinASecond) {
  settings.health.tls.ca_file = folder / "later.crt";
  settle();
  EXPECT_FALSE(reports[0].verified);
  EXPECT_EQ(reports[0].detail, "no CA file yet");
  folder.write("later.crt", test::test_authority().certificate_pem());
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_TRUE(reports[1].verified);
  EXPECT_EQ(reports[1].detail, "");
}

TEST_F(Checker, ARotatedClientCertificateIsShownWithTheNextProbe) {
  auto asking = test::test_tls();
  asking.client = net::client_certificate::asked;
  server.use(asking);
  const auto issue = [](const std::string& name) {
    return test::test_authority().issue(
        {.common_name = name, .names = {}, .key = demo::key_kind::p256});
  };
  const auto first = issue("first");
  settings.health.tls.client_cert_file = folder.write("c.crt", first.certificate_pem);
  settings.health.tls.client_key_file = folder.write("c.key", first.key_pem);
  delay = 50ms;
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  EXPECT_EQ(server.counters().last_client, "first");
  const auto second = issue("second");
  folder.write("c.crt", second.certificate_pem);
  folder.write("c.key", second.key_pem);
  EXPECT_TRUE(test::poll_until(io, [&] { return server.counters().last_client == "second"; }));
  for (const auto& report : reports) EXPECT_EQ(report.result, outcome::passed);
}

TEST_F(Checker, NewSettingsCountFromTheNextProbe) {
  server.answer("/readyz", {.status = 500, .body = ""});
  delay = 20ms;
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  settings.health.path = "/livez";
  checker().configure(settings);
  EXPECT_TRUE(test::poll_until(io, [&] { return reports.back().result == outcome::passed; }));
}

TEST_F(Checker, OtherTlsSettingsCountAtOnce) {
  settle();
  settings.health.tls.server_name = "elsewhere.example";
  checker().configure(settings);
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_EQ(reports[1].result, outcome::wrong_certificate);
}

TEST_F(Checker, ALateAnswerIsHeard) {
  settle();
  settings.health.timeout = 300ms;
  checker().configure(settings);
  server.answer("/readyz", {.delay = 500ms});
  checker().probe_now(cp1);
  ASSERT_TRUE(reported(2));
  EXPECT_EQ(reports[1].result, outcome::timed_out);
  EXPECT_TRUE(test::poll_until(
      io, [&] { return heard > 0; }, 1s));
}

TEST_F(Checker, ItsOwnTroubleDoesNotMakeItSpin) {
  delay = 0ms;
  checker().add(cp1, *net::parse_endpoint("255.255.255.255:6443", 0));
  pass(200ms);
  EXPECT_GE(reports.size(), 2u);
  EXPECT_LE(reports.size(), 25u);
}

std::ptrdiff_t open_descriptors() {
  using std::filesystem::directory_iterator;
  return std::distance(directory_iterator("/proc/self/fd"), directory_iterator());
}

TEST_F(Checker, LeavesNoDescriptorBehind) {
  settings.health.timeout = 300ms;
  asio::steady_timer first_use(io);  // the loop's own descriptors are there now
  const auto before = open_descriptors();
  delay = 10ms;
  server.answer("/readyz", {.delay = 350ms});  // witnesses, too
  checker().add(cp1, server.address());
  checker().add(2, test::closed_port());
  ASSERT_TRUE(reported(10));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(open_descriptors(), before);
}

// Takes every descriptor that this process may still open.
class no_descriptors {
 public:
  no_descriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    auto fewer = before_;
    fewer.rlim_cur = 256;
    ::setrlimit(RLIMIT_NOFILE, &fewer);
    for (int one = ::open("/dev/null", O_RDONLY); one >= 0; one = ::open("/dev/null", O_RDONLY))
      taken_.push_back(one);
  }
  ~no_descriptors() {
    for (const int one : taken_) ::close(one);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

TEST_F(Checker, ProbesOnWhenClientsHaveTakenEveryDescriptor) {
  delay = 20ms;
  // The fake server's thread gets descriptors of its own: as if in another process.
  server.with([](demo::apiserver& it) {
    it.behaviour().close_after_answer = true;
    ASSERT_EQ(::unshare(CLONE_FILES), 0);
  });
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  const no_descriptors taken;
  const auto before = reports.size();
  ASSERT_TRUE(reported(before + 10));
  for (const auto& report : reports) EXPECT_EQ(report.result, outcome::passed) << report.detail;
}

}  // namespace
}  // namespace kubelane
