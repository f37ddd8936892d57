// What went wrong for others in the field, on a running kubelane.

#include "line_client.hpp"
#include "serving.hpp"
#include "tests/support/poll_until.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// Resident memory in KiB.
long resident(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/statm");
  long size = 0;
  long pages = 0;
  file >> size >> pages;
  return pages * 4;
}

std::ptrdiff_t descriptors(pid_t pid) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(pid) + "/fd");
  return std::distance(begin(all), end(all));
}

std::string without(std::string text, const std::string& name) {
  const auto from = text.find("  - {name: " + name);
  return text.erase(from, text.find('\n', from) + 1 - from);
}

TEST(Field, AlternatingOutagesOfTwoServersFailNoRequest) {
  world it;
  binary run({"run", "--config", it.write(without(it.configuration(), "cp3"))});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready")) << run.error();
  ASSERT_TRUE(becomes(it.admin, "cp2", "ready")) << run.error();
  const auto all_succeed = [&](std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < end) {
      if (!line_client(it.port).ask("name")) return false;
      std::this_thread::sleep_for(50ms);
    }
    return true;
  };
  for (int round = 0; round < 2; ++round)
    for (const std::size_t down : {0U, 1U}) {
      it.servers[down]->kill();
      EXPECT_TRUE(all_succeed(2s)) << "round " << round << '\n' << run.error();
      it.servers[down]->listen();
      // Not ready yet, perhaps held down: it has to do all the same once the other is gone.
      EXPECT_TRUE(all_succeed(4s)) << "round " << round << '\n' << run.error();
    }
}

TEST(Field, WithEveryServerRefusingClientsAreResetAtOnceAndServedAgainSoonAfter) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  for (const auto& server : it.servers) server->kill();
  for (const char* name : {"cp1", "cp2", "cp3"}) ASSERT_TRUE(becomes(it.admin, name, "refused"));
  for (int i = 0; i < 20; ++i) {
    line_client client(it.port);
    EXPECT_EQ(client.wait_for_end(3s), line_client::state::reset) << i;
  }
  it.servers[0]->listen();
  EXPECT_TRUE(poll_until([&] { return line_client(it.port).ask("name") == "cp1"; }, 5s))
      << it.run.error();
}

TEST(Field, WithEveryServerSilentClientsAreResetWithinTheTotalOfADial) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  for (const auto& server : it.servers) server->freeze();
  for (const char* name : {"cp1", "cp2", "cp3"}) ASSERT_TRUE(becomes(it.admin, name, "hung"));
  EXPECT_TRUE(answers(it.admin, "/readyz", 503));
  EXPECT_EQ(get(it.admin, "/livez").status, 200) << "a restart would not help";
  for (const auto& server : it.servers) server->thaw();
  EXPECT_TRUE(answers(it.admin, "/readyz", 200)) << it.run.error();
}

TEST(Field, AFrozenServerGetsNoNewRequestAndComesBack) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.servers[0]->freeze();
  ASSERT_TRUE(becomes(it.admin, "cp1", "hung"));
  for (int i = 0; i < 30; ++i) {
    const auto name = line_client(it.port).ask("name");
    ASSERT_TRUE(name) << i;
    EXPECT_NE(*name, "cp1");
  }
  it.servers[0]->thaw();
  EXPECT_TRUE(becomes(it.admin, "cp1", "ready", 10s)) << it.run.error();
}

TEST(Field, AStoppedProcessDoesNotAnswerItsLivenessProbeAndAnswersWhenItGoesOn) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.run.signal(SIGSTOP);
  EXPECT_EQ(get(it.admin, "/livez").status, 0);
  it.run.signal(SIGCONT);
  EXPECT_TRUE(answers(it.admin, "/livez", 200));
}

TEST(Field, MemoryFollowsUseAndNotTheDescriptorLimit) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's own memory is in the way";
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  const auto before = resident(it.run.pid());
  EXPECT_LT(before, 20 * 1024);
  {
    const auto held = it.hold(1000);
    const auto during = resident(it.run.pid());
    EXPECT_LT((during - before) / 1000.0, 40) << "KiB a pair";
  }
  EXPECT_TRUE(poll_until([&] { return resident(it.run.pid()) < before + 5 * 1024; }))
      << resident(it.run.pid()) - before;
}

TEST(Field, MemoryAndDescriptorsStayWhileTheApiIsAway) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's own memory is in the way";
  serving it("", "interval: 100ms");
  ASSERT_TRUE(it.ready) << it.run.error();
  for (const auto& server : it.servers) server->kill();
  ASSERT_TRUE(answers(it.admin, "/readyz", 503));
  const auto reconnect = [&](std::chrono::milliseconds duration) {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 20; ++i) line_client(it.port).wait_for_end(1s);
      std::this_thread::sleep_for(50ms);
    }
  };
  reconnect(4s);
  const auto memory = resident(it.run.pid());
  const auto open = descriptors(it.run.pid());
  reconnect(12s);
  EXPECT_LT(resident(it.run.pid()), memory + 2 * 1024);
  EXPECT_LE(descriptors(it.run.pid()), open + 10);
  it.servers[0]->listen();
  EXPECT_TRUE(poll_until([&] { return line_client(it.port).ask("name").has_value(); }, 5s));
}

TEST(Field, ANameThatDoesNotResolveDelaysNobody) {
  world it;
  auto text = it.configuration();
  const auto at = text.find("upstreams:\n") + 11;
  text.insert(at, "  - {name: cp9, address: cp9.kubelane.invalid}\n");
  binary run({"run", "--config", it.write(text)});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready")) << run.error();
  EXPECT_TRUE(becomes(it.admin, "cp9", "unresolved"));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(Field, LocalhostWorksInBothFamilies) {
  world it;
  auto text = it.configuration();
  const auto port = std::to_string(it.port);
  const auto listen = "listen: 127.0.0.1:" + port;
  text.replace(text.find(listen), listen.size(),
               "listen: [\"127.0.0.1:" + port + "\", \"[::1]:" + port + "\"]");
  binary run({"run", "--config", it.write(text)});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready")) << run.error();
  EXPECT_TRUE(line_client(it.port).ask("name"));
  EXPECT_TRUE(line_client(it.port, 10s, line_client::family::v6).ask("name")) << run.error();
}

TEST(Field, IdleConnectionsOfEveryKindLetTheProcessSleep) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  const auto cpu = [&] { return metric(it.admin, "process_cpu_seconds_total").value_or(-1); };
  const auto held = it.hold(50);
  std::vector<line_client> half;
  for (int i = 0; i < 50; ++i) {
    half.emplace_back(it.port);
    half.back().ask("name");
    half.back().send("shut\n");  // the server's side is closed, ours stays open
  }
  std::this_thread::sleep_for(1s);
  const auto before = cpu();
  std::this_thread::sleep_for(8s);
  EXPECT_LT(cpu() - before, sanitized ? 1.0 : 0.3);
}

}  // namespace
}  // namespace kubelane::test
