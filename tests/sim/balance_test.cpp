// Where new connections go when servers leave and come back.

#include "scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <numeric>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;

void stop(world& in, std::size_t server) {
  in.servers[server].program = process::gone;
}
void start(world& in, std::size_t server) {
  in.servers[server].program = process::running;
}

TEST(Balance, NewClientsGoToTheServerThatARollingRestartLeftEmpty) {
  for (int seed = 1; seed <= seeds() / 10; ++seed) {
    world in(static_cast<std::uint64_t>(seed));
    in.servers.resize(3);
    node worker(in, {});
    worker.run_until(in.now + 2s);
    worker.connect_clients(30, 0ms);
    for (std::size_t server = 0; server < 3; ++server)
      EXPECT_EQ(worker.clients_on(server), 10u) << "before";
    for (std::size_t server = 0; server < 3; ++server) {
      stop(in, server);
      worker.run_until(in.now + 12s);
      start(in, server);
      worker.run_until(in.now + 8s);
    }
    worker.run_until(in.now + 60s);
    ASSERT_EQ(worker.clients_on(2), 0u) << "nothing is ever closed for balance";
    worker.connect_clients(15, 0ms);
    EXPECT_EQ(worker.clients_on(2), 15u);
  }
}

// Five hundred clients on the two others; ten more arrive each second.
TEST(Balance, AServerThatComesBackIsNotRushed) {
  for (int seed = 1; seed <= seeds() / 10; ++seed) {
    world in(static_cast<std::uint64_t>(seed));
    in.servers.resize(3);
    stop(in, 0);
    node worker(in, {});
    worker.run_until(in.now + 2s);
    start(in, 0);  // its very first start is over: it was ready once
    worker.run_until(in.now + 5s);
    stop(in, 0);
    worker.run_until(in.now + 20s);
    worker.connect_clients(500, 0ms);
    start(in, 0);
    while (worker.state_of(0) != health::state::ready) worker.run_until(in.now + 10ms);
    std::vector<double> per_second;
    for (int second = 0; second < 60; ++second) {
      const auto before = worker.clients_on(0);
      for (int i = 0; i < 10; ++i) {
        worker.run_until(in.now + 100ms);
        worker.connect_clients(1, 0ms);
      }
      per_second.push_back(static_cast<double>(worker.clients_on(0) - before));
    }
    const auto mean = std::accumulate(per_second.begin(), per_second.end(), 0.0) / 60;
    EXPECT_LE(*std::max_element(per_second.begin(), per_second.end()), 3 * mean);
    EXPECT_LE(per_second.front(), 6) << "of ten";
    EXPECT_EQ(per_second[32], 10) << "after the slow start it is the emptiest";
  }
}

TEST(Balance, ABurstWhileOneServerStartsSlowlyGoesMostlyToTheOthers) {
  world in(1);
  in.servers.resize(3);
  node worker(in, {});
  worker.run_until(in.now + 2s);
  stop(in, 0);
  worker.run_until(in.now + 20s);
  start(in, 0);
  while (worker.state_of(0) != health::state::ready) worker.run_until(in.now + 10ms);
  worker.connect_clients(500, 0ms);
  EXPECT_LE(worker.clients_on(0), 100u);
  EXPECT_GE(worker.clients_on(0), 20u);
}

TEST(Balance, ServersThatComeBackTogetherShareABurstEvenly) {
  for (const auto policy : {config::balance_policy::least_connections,
                            config::balance_policy::round_robin, config::balance_policy::random}) {
    world in(3);
    in.servers.resize(3);
    config::config settings;
    settings.balance = policy;
    node worker(in, settings);
    worker.run_until(in.now + 2s);
    for (std::size_t server = 0; server < 3; ++server) stop(in, server);
    worker.run_until(in.now + 30s);
    for (std::size_t server = 0; server < 3; ++server) start(in, server);
    worker.run_until(in.now + 10s);
    worker.connect_clients(501, 0ms);
    for (std::size_t server = 0; server < 3; ++server)
      EXPECT_NEAR(static_cast<double>(worker.clients_on(server)), 167, 33);
  }
}

TEST(Balance, AlternatingOutagesLeaveNobodyStuck) {
  world in(5);
  in.servers.resize(2);
  node worker(in, {});
  worker.run_until(in.now + 2s);
  worker.fresh_every = 200ms;
  for (int round = 0; round < 10; ++round) {
    for (std::size_t server = 0; server < 2; ++server) {
      stop(in, server);
      worker.run_until(in.now + 20s);
      start(in, server);
      worker.run_until(in.now + 4s);
    }
  }
  EXPECT_EQ(worker.fresh_failed, 0);
  worker.run_until(in.now + 60s);
  EXPECT_EQ(worker.state_of(0), health::state::ready);
  EXPECT_EQ(worker.state_of(1), health::state::ready);
}

}  // namespace
}  // namespace kubelane::sim
