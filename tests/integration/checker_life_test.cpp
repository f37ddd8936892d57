#include "tests/support/checker_fixture.hpp"
#include "tests/support/silent_listener.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

namespace kubelane {
namespace {

using clock = std::chrono::steady_clock;
using health::checker_key;
using health::outcome;
using namespace std::chrono_literals;

// Its end, its files, its settings, its descriptors.
class CheckerLife : public test::checker_fixture {};

TEST_F(CheckerLife, StopsInOrder) {
  settle();
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
  EXPECT_EQ(server.counters().failed_handshakes, 0u);
}

TEST_F(CheckerLife, AStopLetsARunningProbeFinish) {
  settle();
  server.answer("/readyz", {.delay = 150ms});
  checker().probe_now(cp1);
  pass(50ms);
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(CheckerLife, AStopBetweenDialAndHandshakeLeavesNoBrokenHandshake) {
  settle();
  server.drop_connections(demo::first_act::close);
  ASSERT_TRUE(test::poll_until(io, [&] { return server.counters().accepted == 2; }));
  EXPECT_TRUE(stop());
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().failed_handshakes, 0u);
}

TEST_F(CheckerLife, AFrozenServerDoesNotHoldAStopUp) {
  settings.health.timeout = 5s;
  server.freeze();
  checker().add(cp1, server.address());
  pass(50ms);
  const auto begin = clock::now();
  EXPECT_TRUE(stop());
  EXPECT_LT(clock::now() - begin, 1s);
  server.thaw();
}

TEST_F(CheckerLife, TenQuickWorkersLeaveNoTraceInTheServersLog) {
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

TEST_F(CheckerLife, ACaThatAppearsIsUsedWithinASecond) {
  settings.health.tls.ca_file = folder / "later.crt";
  settle();
  EXPECT_FALSE(reports[0].verified);
  EXPECT_EQ(reports[0].detail, "no CA file yet");
  folder.write("later.crt", test::test_authority().certificate_pem());
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_TRUE(reports[1].verified);
  EXPECT_EQ(reports[1].detail, "");
}

TEST_F(CheckerLife, ARotatedClientCertificateIsShownWithTheNextProbe) {
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

TEST_F(CheckerLife, NewSettingsCountFromTheNextProbe) {
  server.answer("/readyz", {.status = 500, .body = ""});
  delay = 20ms;
  checker().add(cp1, server.address());
  ASSERT_TRUE(reported(1));
  settings.health.path = "/livez";
  checker().configure(settings);
  EXPECT_TRUE(test::poll_until(io, [&] { return reports.back().result == outcome::passed; }));
}

TEST_F(CheckerLife, OtherTlsSettingsCountAtOnce) {
  settle();
  settings.health.tls.server_name = "elsewhere.example";
  checker().configure(settings);
  ASSERT_TRUE(reported(2, 1s));
  EXPECT_EQ(reports[1].result, outcome::wrong_certificate);
}

TEST_F(CheckerLife, ALateAnswerIsHeard) {
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

TEST_F(CheckerLife, ItsOwnTroubleDoesNotMakeItSpin) {
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

TEST_F(CheckerLife, LeavesNoDescriptorBehind) {
  settings.health.timeout = 300ms;
  boost::asio::steady_timer first_use(io);  // the loop's own descriptors are there now
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

TEST_F(CheckerLife, ProbesOnWhenClientsHaveTakenEveryDescriptor) {
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
