// What the process before has left is adopted or ended, whatever this one finds at its start.

#include "kept_world.hpp"
#include "line_client.hpp"
#include "net/socket.hpp"
#include "proxy/listener.hpp"
#include "systemd/crash_count.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

constexpr char broken[] = "version: 1\nlistn: 127.0.0.1:6443\n";

/// A kept connection, and no process.
struct left_behind : kept_world {
  left_behind() : client(port) {
    name = client.ask("name").value_or("nobody");
    ready = ready && stores(1);
    manager.end(SIGKILL);
  }
  bool is_ended() { return client.wait_for_end(5s) != line_client::state::open; }

  line_client client;
  std::string name;
};

TEST(KeptAtStart, WithABrokenConfigurationTheLastGoodOneServes) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  it.write(broken);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(it.client.ask("name")) << it.log();
  EXPECT_TRUE(line_client(it.port).ask("name"));
  EXPECT_EQ(metric(it.admin, "kubelane_config_fallback"), 1);
  EXPECT_NE(it.log().find("listn"), std::string::npos) << it.log();
  EXPECT_NE(it.log().find("running on the last good configuration"), std::string::npos) << it.log();
}

TEST(KeptAtStart, ARepairedConfigurationEndsTheFallback) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  it.write(broken);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  it.write(it.configuration());
  EXPECT_TRUE(poll_until([&] { return metric(it.admin, "kubelane_config_fallback") == 0; }, 10s))
      << it.log();
}

TEST(KeptAtStart, WithoutAGoodConfigurationEverythingIsEnded) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  it.write(broken);
  ::unlink((it.folder / "last-good.yaml").c_str());
  it.manager.start();
  EXPECT_EQ(it.manager.run().wait(), 2);
  EXPECT_TRUE(it.is_ended());
  EXPECT_FALSE(line_client(it.port).connected());
  EXPECT_TRUE(poll_until([&] { return it.manager.store.held().empty(); }));
}

TEST(KeptAtStart, ABrokenReloadIsNoLastGoodConfiguration) {
  kept_world it;
  ASSERT_TRUE(it.ready);
  it.write(broken);
  it.manager.run().signal(SIGHUP);
  ASSERT_TRUE(it.manager.run().says("configuration rejected")) << it.log();
  it.manager.restart();
  EXPECT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(KeptAtStart, WithAnotherListenAddressTheOldOneIsClosedAndConnectionsStay) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  const int old_port = std::exchange(it.port, free_port());
  it.write(it.configuration());
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(it.client.ask("name")) << it.log();
  EXPECT_TRUE(line_client(it.port).ask("name"));
  EXPECT_TRUE(poll_until([&] { return !line_client(old_port).connected(); }));
  EXPECT_TRUE(it.stores(1)) << it.log();
  EXPECT_TRUE(poll_until([&] { return it.manager.store.count("l") == 1; }));
  it.manager.end(SIGKILL);
  line_client waiting(it.port);
  EXPECT_TRUE(waiting.connected()) << "the new listener is kept, too";
}

TEST(KeptAtStart, FromOneAddressToAllOfThemConnectionsStay) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  std::string text = it.configuration();
  text.replace(text.find("127.0.0.1"), 9, "0.0.0.0");
  it.write(text);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(it.client.ask("name")) << it.log();
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(KeptAtStart, WhenTheNewAddressCannotBeHadEverythingIsEnded) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  const auto taken =
      proxy::open_listener(net::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  it.port = net::local_of(*taken)->port();
  it.write(it.configuration());
  it.manager.start();
  EXPECT_NE(it.manager.run().wait(), 0);
  EXPECT_TRUE(it.is_ended());
}

TEST(KeptAtStart, WhenOneOfTwoAddressesCannotBeHadTheOtherAcceptsForNobodyNeither) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  const auto taken =
      proxy::open_listener(net::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  std::string text = it.configuration();
  const auto first = "127.0.0.1:" + std::to_string(it.port);
  text.replace(text.find(first), first.size(),
               "[\"" + first + "\", \"" + net::to_string(*net::local_of(*taken)) + "\"]");
  it.write(text);
  it.manager.start();
  EXPECT_EQ(it.manager.run().wait(), 1) << it.log();
  EXPECT_TRUE(it.is_ended());
  EXPECT_FALSE(line_client(it.port).connected());
  EXPECT_TRUE(poll_until([&] { return it.manager.store.count("l") == 0; }));
}

TEST(KeptAtStart, AReloadThatWaitsForARestartIsNoLastGoodConfiguration) {
  kept_world it;
  ASSERT_TRUE(it.ready);
  const std::string good = it.configuration();
  const int port = std::exchange(it.port, free_port());
  it.write(it.configuration());
  it.manager.run().signal(SIGHUP);
  ASSERT_TRUE(it.manager.run().says("takes effect at the next restart")) << it.log();
  std::ifstream copy(it.folder / "last-good.yaml");
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(copy), {}}), good);
  it.port = port;
}

TEST(KeptAtStart, WithAStoreThatHasBecomeTooSmallEverythingIsEndedAndNewClientsAreServed) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  service_manager other({"run", "--config", it.path}, 2048, {"FDSTORE=16"});
  for (const auto& [fd, name] : it.manager.store.held()) other.store.add(name, {fd});
  it.manager.store.clear();
  other.start();
  ASSERT_TRUE(other.ready()) << other.run().error();
  EXPECT_TRUE(it.is_ended());
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(KeptAtStart, AListenerOfASocketUnitIsUsedAndLeftToIt) {
  world it;
  const auto address = *net::parse_endpoint("127.0.0.1:" + std::to_string(it.port), 0);
  const auto listener = proxy::open_listener(address);
  ASSERT_TRUE(listener);
  const auto path = it.write(it.configuration());
  binary run({"run", "--config", path}, {}, {{*listener, "kubelane.socket"}});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready")) << run.error();
  std::vector<line_client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.ask("name"));
  run.signal(SIGTERM);
  ASSERT_TRUE(run.says("stopping")) << run.error();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(line_client(it.port).connected()) << "it is the unit's";
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_EQ(run.wait(), 0) << run.error();
  ::close(*listener);
}

TEST(KeptAtStart, ARemovedNamesUpstreamLeavesAlsoIfTheNameNeverResolved) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  const std::string drain = "drain: {removed: 1s}\n";
  std::string text = it.configuration(drain);
  const auto at = text.find("  - {name: " + it.name);
  text.erase(at, text.find('\n', at) + 1 - at);
  const std::string without_name = text;
  text.insert(text.find("  - {name: "), "  - {name: n, address: \"nothing.invalid\"}\n");
  it.write(text);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(it.client.ask("name")) << "it may still be what the name means";
  it.write(without_name);
  it.manager.run().signal(SIGHUP);
  EXPECT_EQ(it.client.wait_for_end(6s), line_client::state::ended) << it.log();
}

TEST(KeptAtStart, ConnectionsOfARemovedUpstreamLeaveInOrder) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  std::string text = it.configuration("drain: {removed: 1s}\n");
  const auto at = text.find("  - {name: " + it.name);
  text.erase(at, text.find('\n', at) + 1 - at);
  it.write(text);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(it.client.wait_for_end(5s), line_client::state::ended) << it.log();
  EXPECT_NE(line_client(it.port).ask("name"), it.name);
}

TEST(KeptAtStart, AnUpstreamThatIsOnlyCalledOtherwiseKeepsItsConnections) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  std::string text = it.configuration("drain: {removed: 1s}\n");
  text.replace(text.find("name: cp"), 8, "name: xx");
  it.write(text);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  std::this_thread::sleep_for(2s);
  EXPECT_TRUE(it.client.ask("name")) << it.log();
}

TEST(KeptAtStart, WhatANewerVersionHasStoredIsEndedAndLetGoOf) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  it.manager.store.add("x17", {pair[0]});
  const int memory = ::memfd_create("other", MFD_CLOEXEC);
  it.manager.store.add("future", {memory});
  ::close(pair[0]);
  ::close(memory);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  char byte = 0;
  EXPECT_TRUE(poll_until([&] { return ::recv(pair[1], &byte, 1, MSG_DONTWAIT) == 0; }));
  EXPECT_EQ(it.manager.store.count("x17") + it.manager.store.count("future"), 0U);
  EXPECT_TRUE(it.client.ask("name"));
  ::close(pair[1]);
}

TEST(KeptAtStart, WithoutItsTableNoConnectionIsLeftInLimbo) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  service_manager other({"run", "--config", it.path});
  for (const auto& [fd, name] : it.manager.store.held())
    if (name != "connections") other.store.add(name, {fd});
  it.manager.store.clear();
  other.start();
  ASSERT_TRUE(other.ready()) << other.run().error();
  EXPECT_TRUE(it.is_ended());
  EXPECT_TRUE(line_client(it.port).ask("name"));
  EXPECT_TRUE(poll_until([&] { return other.store.count("c1") == 0; }));
}

TEST(KeptAtStart, AnIncompleteConnectionIsEnded) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  service_manager other({"run", "--config", it.path});
  bool left_out = false;
  for (const auto& [fd, name] : it.manager.store.held()) {
    const bool is_first = name.starts_with("c1") && !std::exchange(left_out, true);
    if (!is_first) other.store.add(name, {fd});
  }
  it.manager.store.clear();
  other.start();
  ASSERT_TRUE(other.ready()) << other.run().error();
  EXPECT_TRUE(it.is_ended());
  EXPECT_TRUE(other.run().says("could not be carried on")) << other.run().error();
}

TEST(KeptAtStart, AfterThreeCrashesInARowConnectionsAreNotCarriedOn) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(systemd::crash_count::note(it.folder / ""));
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(it.client.wait_for_end(5s), line_client::state::reset) << it.log();
  EXPECT_TRUE(it.manager.run().says("crashed too often lately")) << it.log();
  EXPECT_TRUE(line_client(it.port).ask("name")) << "the listener is carried on";
  EXPECT_TRUE(it.store_is_clean());
}

TEST(KeptAtStart, GivingUpManyConnectionsIsToldWholeToASlowManager) {
  kept_world it;
  ASSERT_TRUE(it.ready);
  std::vector<line_client> clients;
  for (int i = 0; i < 30; ++i) clients.emplace_back(it.port);
  for (auto& each : clients) ASSERT_TRUE(each.ask("name"));
  ASSERT_TRUE(it.stores(30)) << it.log();
  it.manager.end(SIGKILL);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(systemd::crash_count::note(it.folder / ""));
  it.manager.store.slow_down(5ms);
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  for (auto& each : clients) EXPECT_EQ(each.wait_for_end(5s), line_client::state::reset);
  EXPECT_TRUE(it.store_is_clean());
  it.manager.store.slow_down(0ms);
  it.manager.restart();
  EXPECT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(it.log().find("crashed too often"), std::string::npos) << "it is said once";
}

TEST(KeptAtStart, AnEndWhileNoProcessRanIsPassedOn) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  ASSERT_TRUE(it.client.send("count\nsome bytes"));
  it.client.end();
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_EQ(it.client.read_line(), "10");
}

TEST(KeptAtStart, AServerThatDiedMeanwhileIsToldToTheClient) {
  left_behind it;
  ASSERT_TRUE(it.ready);
  for (auto& each : it.servers) each->kill();
  it.manager.start();
  ASSERT_TRUE(it.manager.ready()) << it.log();
  EXPECT_TRUE(it.is_ended());
}

}  // namespace
}  // namespace kubelane::test
