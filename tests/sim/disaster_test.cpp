// Several servers are lost at once, or all of them, or the network with them.

#include "scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;

happening at(milliseconds after, std::function<void(world&)> what) {
  return {after, [what](world& in, node&) { what(in); }};
}

struct seen {
  milliseconds last{0};  // closing
  int closings = 0;
  int orders = 0;
  int stuck = 0;    // on a server that is lost at the end
  int healthy = 0;  // closings on a server that served
};

bool is_lost(const api_server& it) {
  return it.program != process::running || !it.link || it.answer != readyz::ok;
}

seen run_all(scenario plan, std::vector<happening> script) {
  plan.script = std::move(script);
  plan.lasts = plan.script.back().after + 60s;
  seen all;
  for (const auto every : {0ms, 20ms}) {
    plan.every = every;
    for (int seed = 1; seed <= seeds() / 2; ++seed) {
      run(plan, static_cast<std::uint64_t>(seed), [&](world& in, node& it, time_point start) {
        all.closings += static_cast<int>(it.closings.size());
        all.orders += it.reset_orders + it.drain_orders;
        for (const auto& each : it.closings) {
          all.last = std::max(all.last, std::chrono::ceil<milliseconds>(each.at - start));
          all.healthy += each.served && !is_lost(in.servers[each.server]);
        }
        for (std::size_t server = 0; server < in.servers.size(); ++server)
          if (is_lost(in.servers[server])) all.stuck += static_cast<int>(it.clients_on(server));
      });
    }
  }
  std::cout << plan.name << ": " << all.closings << " closed, the last after " << all.last.count()
            << " ms, " << all.stuck << " stuck\n";
  return all;
}

TEST(Disaster, TwoOfThreeFreezeAndAllMoveToTheThird) {
  const auto all = run_all({.name = "two of three freeze"}, {at(0ms, [](world& in) {
                             in.servers[0].program = in.servers[1].program = process::frozen;
                           })});
  EXPECT_EQ(all.stuck, 0);
  EXPECT_EQ(all.healthy, 0);
  EXPECT_LE(all.last, 5s);
}

TEST(Disaster, TwoOfThreeVanishAndAllMoveToTheThird) {
  const auto all =
      run_all({.name = "two of three vanish"},
              {at(0ms, [](world& in) { in.servers[0].link = in.servers[1].link = false; })});
  EXPECT_EQ(all.stuck, 0);
  EXPECT_EQ(all.healthy, 0);
  EXPECT_LE(all.last, 5s);
}

TEST(Disaster, OneVanishesAndSoonAfterAnother) {
  const auto all = run_all({.name = "one vanishes, another five seconds later"},
                           {at(0ms, [](world& in) { in.servers[0].link = false; }),
                            at(5s, [](world& in) { in.servers[1].link = false; })});
  EXPECT_EQ(all.stuck, 0);
  EXPECT_EQ(all.healthy, 0);
  EXPECT_LE(all.last, 10s);
}

TEST(Disaster, AllFreezeAndTheFirstThatIsBackTakesTheConnections) {
  const auto all = run_all({.name = "all freeze, one is back after twenty seconds"},
                           {at(0ms,
                               [](world& in) {
                                 for (auto& each : in.servers) each.program = process::frozen;
                               }),
                            at(20s, [](world& in) { in.servers[2].program = process::running; })});
  EXPECT_EQ(all.stuck, 0);
  EXPECT_EQ(all.healthy, 0);
  EXPECT_LE(all.last, 26s);
}

TEST(Disaster, AllVanishAndTheFirstThatIsBackTakesTheConnections) {
  const auto all = run_all({.name = "all vanish, one is back after twenty seconds"},
                           {at(0ms,
                               [](world& in) {
                                 for (auto& each : in.servers) each.link = false;
                               }),
                            at(20s, [](world& in) { in.servers[2].link = true; })});
  EXPECT_EQ(all.stuck, 0);
  EXPECT_EQ(all.healthy, 0);
  EXPECT_LE(all.last, 26s);
}

TEST(Disaster, AWholeControlPlaneOffAndOnResetsNothing) {
  const auto all =
      run_all({.name = "all killed, back after a minute"}, {at(0ms,
                                                               [](world& in) {
                                                                 for (auto& each : in.servers)
                                                                   each.program = process::gone;
                                                               }),
                                                            at(60s, [](world& in) {
                                                              for (auto& each : in.servers)
                                                                each.program = process::running;
                                                            })});
  EXPECT_EQ(all.orders, 0);
}

TEST(Disaster, TwoOfFiveLoseEtcdAndTheirConnectionsLeave) {
  for (const int nodes : {100, 5000}) {
    scenario plan{.name = "two of five lose etcd, " + std::to_string(nodes) + " nodes",
                  .servers = 5};
    plan.settings.cluster.nodes = nodes;
    const auto all = run_all(plan, {at(0ms, [](world& in) {
                               in.servers[0].answer = in.servers[3].answer = readyz::etcd_failed;
                             })});
    EXPECT_EQ(all.stuck, 0);
    EXPECT_EQ(all.healthy, 0);
    EXPECT_LE(all.last, config::probe_interval(plan.settings) + 17s);
  }
}

TEST(Disaster, ANetworkThatComesBackPieceByPieceResetsNothing) {
  const auto all = run_all({.name = "dark for four seconds, back piece by piece"},
                           {at(0ms, [](world& in) { in.node_link = false; }),
                            at(4s,
                               [](world& in) {
                                 in.node_link = true;
                                 in.servers[1].link = in.servers[2].link = false;
                               }),
                            at(4600ms, [](world& in) { in.servers[1].link = true; }),
                            at(5200ms, [](world& in) { in.servers[2].link = true; })});
  EXPECT_EQ(all.orders, 0);
}

TEST(Disaster, TheOnlyServerIsNeverReset) {
  for (const auto strike : {+[](api_server& it) { it.program = process::frozen; },
                            +[](api_server& it) { it.link = false; },
                            +[](api_server& it) { it.answer = readyz::etcd_failed; }}) {
    const auto all = run_all({.name = "the only server is lost for a minute", .servers = 1},
                             {at(0ms, [=](world& in) { strike(in.servers[0]); }),
                              at(60s, [](world& in) { in.servers[0] = {}; })});
    EXPECT_EQ(all.orders, 0);
  }
}

}  // namespace
}  // namespace kubelane::sim
