// A host that vanishes: needs network namespaces, so root.

#include "health/probe.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/network_namespace.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/run.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;
using health::outcome;
using namespace std::chrono_literals;

class ProbeSilence : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    hosts = test::network_pair::create(why);
    if (!hosts) GTEST_SKIP() << why;
    auto options = test::apiserver_options("cp1");
    options.listen = *net::parse_endpoint("10.99.0.2", 0);
    options.listen = net::endpoint(options.listen.address(), 6443);
    hosts->there([&] { server.emplace(options); });
    config::probe_tls tls;
    tls.ca_file = folder.write("ca.crt", test::test_authority().certificate_pem());
    identity.emplace(tls);
    health::probe_events events;
    events.on_host_silent = [this](const std::string& why_silent) { silent.push_back(why_silent); };
    events.on_heard = [this] { ++heard; };
    probes = std::make_unique<health::prober>(
        io.get_executor(), server->address(), *identity, reserve, std::move(events),
        [](std::exception_ptr what) { std::rethrow_exception(what); });
  }

  void TearDown() override {
    if (!probes) return;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto closing = probes->close();
      co_await std::move(closing);
    }());
  }

  outcome probe(std::chrono::milliseconds timeout = 300ms) {
    auto result = outcome::passed;
    hosts->here([&] {
      test::run(io, [&]() -> asio::awaitable<void> {
        health::probe_settings settings;
        settings.timeout = timeout;
        auto probing = probes->probe(settings);
        const auto report = co_await std::move(probing);
        result = report.result;
      }());
    });
    return result;
  }

  asio::io_context io;
  std::unique_ptr<test::network_pair> hosts;
  test::temporary_folder folder;
  std::optional<test::fake_apiserver> server;
  std::optional<net::credentials> identity;
  net::descriptor_reserve reserve;
  std::unique_ptr<health::prober> probes;
  std::vector<std::string> silent;
  int heard = 0;
};

TEST_F(ProbeSilence, AVanishedHostIsSilentOneSecondAfterTheUnansweredRequest) {
  ASSERT_EQ(probe(), outcome::passed);
  hosts->vanish();
  const auto begin = clock::now();
  EXPECT_EQ(probe(), outcome::timed_out);
  ASSERT_TRUE(test::poll_until(
      io, [&] { return !silent.empty(); }, 4s));
  EXPECT_GE(clock::now() - begin, 1s);
  EXPECT_LT(clock::now() - begin, 2500ms);
  EXPECT_EQ(silent[0], "request not acknowledged");
}

TEST_F(ProbeSilence, AShortBreakIsNot) {
  ASSERT_EQ(probe(), outcome::passed);
  hosts->vanish();
  EXPECT_EQ(probe(), outcome::timed_out);
  hosts->come_back();
  EXPECT_TRUE(test::poll_until(
      io, [&] { return heard > 0; }, 4s));
  EXPECT_TRUE(silent.empty());
}

TEST_F(ProbeSilence, AnIdleConnectionFindsAVanishedHostByKeepAlive) {
  ASSERT_EQ(probe(), outcome::passed);
  hosts->vanish();
  const auto begin = clock::now();
  auto end = health::prober::rest_end::elapsed;
  test::run(io, [&]() -> asio::awaitable<void> {
    auto resting = probes->rest(clock::now() + 10s);
    end = co_await std::move(resting);
  }());
  EXPECT_EQ(end, health::prober::rest_end::host_silent);
  EXPECT_LT(clock::now() - begin, 6s);
  EXPECT_FALSE(probes->silence().empty());
}

TEST_F(ProbeSilence, TheOldConnectionTestifiesWhenAFreshOneCannotConnect) {
  for (int i = 0; i < 30; ++i) ASSERT_EQ(probe(), outcome::passed);
  hosts->vanish();
  EXPECT_EQ(probe(), outcome::timed_out);  // the fresh connection of the thirty-first
  EXPECT_TRUE(test::poll_until(
      io, [&] { return !silent.empty(); }, 4s));
}

TEST_F(ProbeSilence, AnUnresolvableNeighbourIsHostUnreachable) {
  hosts->vanish();
  EXPECT_EQ(probe(5s), outcome::host_silent);
}

}  // namespace
}  // namespace kubelane
