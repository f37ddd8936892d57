// Connections outlive the process that carries them.

#include "echo_client.hpp"
#include "kept_world.hpp"
#include "line_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

TEST(Keeping, AnIdleConnectionOutlivesARestartAndAKill) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  line_client client(it.port);
  const auto name = client.ask("name");
  ASSERT_TRUE(name);
  ASSERT_TRUE(it.stores(1)) << it.log();
  it.manager.restart();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(client.ask("name"), name) << it.log();
  EXPECT_EQ(metric(it.admin, "kubelane_restored_connections_total"), 1);
  it.manager.kill();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(client.ask("name"), name) << it.log();
}

TEST(Keeping, StreamsAtFullSpeedLoseNoByteOverKillsAndRestarts) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  std::vector<std::unique_ptr<echo_client>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<echo_client>(it.port));
  ASSERT_TRUE(it.stores(8)) << it.log();
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 40));
    if (round % 4 == 0)
      it.manager.restart();
    else
      it.manager.kill();
    ASSERT_TRUE(it.manager.ready()) << "round " << round << '\n' << it.log();
  }
  for (auto& each : clients) {
    EXPECT_GT(each->returned(), 100'000U);
    EXPECT_TRUE(each->finish()) << it.log();
  }
  EXPECT_TRUE(it.stores(0));
  EXPECT_TRUE(it.store_is_clean());
}

TEST(Keeping, ARestartKeepsEvenConnectionsThatAreTooYoungToBeStored) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  std::vector<line_client> clients;
  for (int i = 0; i < 60; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.ask("name"));
  it.manager.restart();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  for (auto& each : clients) EXPECT_TRUE(each.ask("name")) << it.log();
}

TEST(Keeping, AClientThatHasNoServerYetIsDialledAgainAfterARestart) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  for (auto& each : it.servers) each->freeze();
  std::vector<line_client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.connected());
  std::this_thread::sleep_for(100ms);
  it.manager.store.sleep(true);  // the manager is busy for a moment
  it.manager.run().signal(SIGTERM);
  std::this_thread::sleep_for(40ms);
  it.manager.store.sleep(false);
  ASSERT_EQ(it.manager.run().wait(), 0);
  EXPECT_EQ(it.manager.store.count("c"), 2U + 20U) << "one descriptor each";
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  for (auto& each : it.servers) each->thaw();
  for (auto& each : clients) EXPECT_TRUE(each.ask("name")) << it.log();
}

TEST(Keeping, ClientsThatAreDialledAgainEndAtOnceEvenIfTheManagerStillHoldsThem) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  for (auto& each : it.servers) each->freeze();
  std::vector<line_client> clients;
  for (int i = 0; i < 6; ++i) clients.emplace_back(it.port);
  std::this_thread::sleep_for(100ms);
  it.manager.end(SIGTERM);
  it.manager.store.keep_everything(true);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  for (auto& each : clients) each.end();
  for (auto& each : clients) EXPECT_EQ(each.wait_for_end(3s), line_client::state::ended);
  for (auto& each : clients) each.reset();
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(it.manager.run().running()) << it.log();
}

TEST(Keeping, NoConnectIsRefusedWhileNoProcessRuns) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  it.manager.end(SIGTERM);
  line_client client(it.port);
  EXPECT_TRUE(client.connected());
  it.manager.start();
  EXPECT_TRUE(client.ask("name")) << it.log();
}

TEST(Keeping, WhatTheManagerDropsEndsAtOnce) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  line_client client(it.port);
  ASSERT_TRUE(client.ask("name"));
  ASSERT_TRUE(it.stores(1)) << it.log();
  it.manager.end(SIGTERM);
  it.manager.store.clear();  // systemctl stop
  EXPECT_NE(client.wait_for_end(1s), line_client::state::open);
  EXPECT_FALSE(line_client(it.port).connected());
}

TEST(Keeping, BeyondTheStoresLimitConnectionsWorkUnkept) {
  kept_world it(16 + 4 * 10);
  ASSERT_TRUE(it.ready) << it.log();
  std::vector<line_client> clients;
  for (int i = 0; i < 14; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.ask("name"));
  ASSERT_TRUE(it.stores(10)) << it.log();
  EXPECT_TRUE(it.manager.run().says("the descriptor store is nearly full")) << it.log();
  for (auto& each : clients) EXPECT_TRUE(each.ask("name"));
  it.manager.kill();
  ASSERT_TRUE(it.manager.ready());
  int alive = 0;
  for (auto& each : clients) alive += each.ask("name") ? 1 : 0;
  EXPECT_EQ(alive, 10) << it.log();
}

TEST(Keeping, WithoutAStoreConnectionsLeaveInOrderAtTheEnd) {
  kept_world it(0);  // the manager listens, and keeps nothing
  ASSERT_TRUE(it.ready) << it.log();
  line_client client(it.port);
  ASSERT_TRUE(client.ask("name"));
  it.manager.run().signal(SIGTERM);
  EXPECT_EQ(client.wait_for_end(10s), line_client::state::ended) << it.log();
  EXPECT_EQ(it.manager.run().wait(), 0);
}

TEST(Keeping, AManagerThatKeepsNothingIsFoundOut) {
  world it;
  const auto path = it.write(it.configuration());
  service_manager manager({"run", "--config", path}, 0, {"FDSTORE=2048"});  // it promises more
  manager.start();
  ASSERT_TRUE(manager.ready());
  line_client client(it.port);
  ASSERT_TRUE(client.ask("name"));
  EXPECT_TRUE(manager.run().says("keeps nothing for this process")) << manager.run().error();
  manager.run().signal(SIGTERM);
  EXPECT_EQ(client.wait_for_end(10s), line_client::state::ended) << manager.run().error();
}

TEST(Keeping, AnEndedConnectionLeavesNothingInTheStore) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  {
    line_client client(it.port);
    ASSERT_TRUE(client.ask("name"));
    ASSERT_TRUE(it.stores(1)) << it.log();
  }
  EXPECT_TRUE(it.store_is_clean());
  line_client client(it.port);
  ASSERT_TRUE(client.ask("name"));
  ASSERT_TRUE(it.stores(1)) << it.log();
  ASSERT_TRUE(client.send("reset\n"));
  EXPECT_EQ(client.wait_for_end(5s), line_client::state::reset);
  EXPECT_TRUE(it.store_is_clean());
}

TEST(Keeping, TheManagerIsToldHowItStands) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  EXPECT_TRUE(poll_until(
      [&] {
        return it.manager.store.heard(
            "STATUS=3 of 3 API servers usable, 0 connections, 0 of them kept over a restart");
      },
      10s));
  it.manager.run().signal(SIGHUP);
  EXPECT_TRUE(poll_until([&] { return it.manager.store.heard("RELOADING=1"); }));
  it.manager.end(SIGTERM);
  EXPECT_TRUE(poll_until([&] { return it.manager.store.heard("STOPPING=1"); }));
}

TEST(Keeping, AStuckManagerStopsNobody) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  it.manager.store.sleep(true);
  std::vector<line_client> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.ask("name"));
  std::this_thread::sleep_for(2s);
  for (auto& each : clients) {
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_TRUE(each.ask("name")) << it.log();
    EXPECT_LT(std::chrono::steady_clock::now() - asked, 1s);
  }
  it.manager.store.sleep(false);
  EXPECT_TRUE(it.stores(40)) << it.log();
}

}  // namespace
}  // namespace kubelane::test
