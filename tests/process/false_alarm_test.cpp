// A false alarm is worse than a slow one: nothing is reset or drained, and no new connection fails,
// while the data path is well.

#include "line_client.hpp"
#include "serving.hpp"
#include "tests/support/poll_until.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

/// Holds twelve connections, opens a fresh one every 100 ms, and counts what goes wrong meanwhile.
class clients {
 public:
  explicit clients(serving& of) : of_(of), held_(of.hold(12)) {}

  void work_for(std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < end) {
      ++fresh_;
      if (!line_client(of_.port).ask("name")) ++fresh_failed_;
      std::this_thread::sleep_for(100ms);
    }
  }

  void expect_nothing_lost() {
    for (auto& [client, name] : held_) EXPECT_EQ(client.ask("name"), name) << of_.run.error();
    EXPECT_EQ(fresh_failed_, 0) << "of " << fresh_ << " fresh connections\n" << of_.run.error();
    EXPECT_EQ(of_.run.error().find("resetting"), std::string::npos) << of_.run.error();
    EXPECT_EQ(of_.run.error().find("draining"), std::string::npos) << of_.run.error();
  }

 private:
  serving& of_;
  std::vector<std::pair<line_client, std::string>> held_;
  int fresh_ = 0;
  int fresh_failed_ = 0;
};

TEST(FalseAlarm, ProbesThatAllTimeOutWhileDataFlowsCloseNothing) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  demo::path_answer late;
  late.delay = 1500ms;
  for (const auto& server : it.servers) server->answer("/readyz", late);
  all.work_for(8s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, TheOnlyServersSlowProbesCloseNothing) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.servers[1]->kill();
  it.servers[2]->kill();
  ASSERT_TRUE(becomes(it.admin, "cp2", "refused"));
  ASSERT_TRUE(becomes(it.admin, "cp3", "refused"));
  clients all(it);
  demo::path_answer late;
  late.delay = 1500ms;
  it.servers[0]->answer("/readyz", late);
  all.work_for(6s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, EveryReadyzRedAtOnceForEightSecondsClosesNothing) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  for (const auto& server : it.servers) server->answer("/readyz", demo::failing_readyz({"etcd"}));
  all.work_for(8s);
  for (const auto& server : it.servers) server->answer("/readyz", {});
  all.work_for(5s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, AnElectionThatTurnsOneRedAfterTheOtherClosesNothing) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  for (const auto& server : it.servers) {
    server->answer("/readyz", demo::failing_readyz({"etcd"}));
    all.work_for(700ms);
  }
  all.work_for(2900ms);
  for (const auto& server : it.servers) {
    server->answer("/readyz", {});
    all.work_for(700ms);
  }
  all.work_for(5s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, ReadyzThatWantsCredentialsClosesNothingAndIsSaidOnce) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  demo::path_answer unauthorized;
  unauthorized.status = 401;
  for (const auto& server : it.servers) server->answer("/readyz", unauthorized);
  all.work_for(5s);
  all.expect_nothing_lost();
  EXPECT_EQ(get(it.admin, "/readyz").status, 200) << "alive, though readiness is unknown";
  const auto& log = it.run.error();
  const auto first = log.find("upstream ready upstream=cp1 from=ready");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("upstream ready upstream=cp1 from=ready", first + 1), std::string::npos)
      << log;
}

TEST(FalseAlarm, AServerPausedForTwoSecondsLosesNoConnection) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  it.servers[1]->freeze();
  std::this_thread::sleep_for(2s);
  it.servers[1]->thaw();
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name) << it.run.error();
  std::this_thread::sleep_for(2s);
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name) << it.run.error();
}

TEST(FalseAlarm, ItsOwnStarvationIsNotBlamedOnAServer) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  it.run.signal(SIGSTOP);
  std::this_thread::sleep_for(5s);
  it.run.signal(SIGCONT);
  std::this_thread::sleep_for(3s);
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name) << it.run.error();
  for (const char* name : {"cp1", "cp2", "cp3"})
    EXPECT_TRUE(becomes(it.admin, name, "ready", 1s)) << it.run.error();
  EXPECT_EQ(it.run.error().find("upstream hung"), std::string::npos) << it.run.error();
}

TEST(FalseAlarm, AServerThatStopsAcceptingAndServesOnKeepsItsConnections) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  it.servers[0]->stop_listening();
  all.work_for(8s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, AServerThatSaysItShutsDownKeepsItsConnectionsForAWhile) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  clients all(it);
  it.servers[0]->answer("/readyz", demo::failing_readyz({"shutdown"}));
  ASSERT_TRUE(becomes(it.admin, "cp1", "shutting_down"));
  all.work_for(6s);
  all.expect_nothing_lost();
}

TEST(FalseAlarm, AClientThatStopsReadingIsWaitedFor) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  constexpr int size = 64 * 1024 * 1024;
  line_client client(it.port, 60s);
  ASSERT_TRUE(client.send("bytes " + std::to_string(size) + "\n"));
  std::this_thread::sleep_for(35s);  // longer than what ends an unacknowledged connection
  EXPECT_EQ(client.read_bytes(size), size) << it.run.error();
}

}  // namespace
}  // namespace kubelane::test
