// What kubelane does of its own accord does not grow with what its clients do.

#include "node.hpp"

#include <gtest/gtest.h>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;

/// What the clients of a node with eight kubelets do.
struct habits {
  int watches = 0;         ///< connections on which something comes all the time
  milliseconds events{0};  ///< between two of them
  int lists = 0;           ///< connections that ask for long lists, one after the other
  milliseconds pause{0};   ///< between an answer and the next request
};

/// Probes in ten minutes, after a minute.
int probes_in_ten_minutes(const config::config& settings, const habits& clients) {
  world in(7);
  in.servers.resize(3);
  node worker(in, settings);
  worker.run_until(in.now + 1s);
  worker.connect_clients(clients.watches, clients.events);
  worker.connect_clients(clients.lists, clients.pause, 3s);
  worker.run_until(in.now + 60s);
  const int before = worker.probes;
  worker.run_until(in.now + 600s);
  return worker.probes - before;
}

double growth(int nodes, const habits& clients) {
  config::config settings;
  settings.cluster.nodes = nodes;
  const double idle = probes_in_ten_minutes(settings, {});
  return probes_in_ten_minutes(settings, clients) / idle;
}

constexpr habits usual = {.watches = 8, .events = 200ms, .lists = 8, .pause = 3s};
// Nothing comes from a server for three seconds, again and again: that is suspicious.
constexpr habits lists_alone = {.lists = 8, .pause = 10ms};

TEST(Storm, BusyWatchesAndListsOfThreeSecondsCauseNoFurtherProbes) {
  for (const int nodes : {8, 100, 1'000, 5'000})
    EXPECT_LE(growth(nodes, usual), 1.02) << nodes << " nodes";
}

TEST(Storm, ListsOfThreeSecondsAloneCauseAFifthMoreAtMost) {
  for (const int nodes : {8, 100, 1'000}) EXPECT_LE(growth(nodes, lists_alone), 1.2) << nodes;
}

TEST(Storm, WhereProbesAreRareSuspicionNeverDoublesThem) {
  EXPECT_LE(growth(5'000, lists_alone), 1.75);
}

}  // namespace
}  // namespace kubelane::sim
