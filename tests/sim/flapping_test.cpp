// How often an upstream changes its state for nothing.

#include "scenario.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;

struct hour {
  int most_changes = 0;  // of one upstream
  int closings = 0;
  double probes_per_second = 0;
};

hour worst_hour(double probe_loss, milliseconds every) {
  scenario plan;
  plan.clients = every > 0ms ? 6 : 0;
  plan.every = every;
  plan.script = {{0ms, [&](world& in, node& it) {
                    it.probes = 0;
                    for (auto& each : in.servers) each.probe_loss = probe_loss;
                  }}};
  plan.lasts = 1h;
  hour worst;
  for (int seed = 1; seed <= std::max(seeds() / 40, 1); ++seed) {
    run(plan, static_cast<std::uint64_t>(seed), [&](world&, node& it, time_point) {
      std::map<proxy::upstream_id, int> changes;
      for (const auto& each : it.changes) ++changes[each.id];
      for (const auto& [id, count] : changes)
        worst.most_changes = std::max(worst.most_changes, count);
      worst.closings += static_cast<int>(it.closings.size());
      worst.probes_per_second = std::max(worst.probes_per_second, it.probes / 3600.0);
    });
  }
  std::cout << probe_loss * 100 << " % of probes lost, " << (every > 0ms ? "busy" : "idle")
            << ": at most " << worst.most_changes << " changes of an upstream's state an hour, "
            << worst.closings << " closed, " << worst.probes_per_second << " probes a second\n";
  return worst;
}

TEST(Flapping, WithoutLossNothingEverChanges) {
  EXPECT_EQ(worst_hour(0, 0ms).most_changes, 0);
  EXPECT_EQ(worst_hour(0, 500ms).most_changes, 0);
}

TEST(Flapping, AtTenPercentProbeLossIsBounded) {
  // Three losses in a row are one probe in a thousand: three or four falls an hour at a probe a
  // second, each followed by a rise.
  EXPECT_LE(worst_hour(0.1, 0ms).most_changes, 30);
}

TEST(Flapping, AtTenPercentProbeLossClosesNothingOnABusyNode) {
  const auto seen = worst_hour(0.1, 200ms);
  EXPECT_LE(seen.most_changes, 30);
  EXPECT_EQ(seen.closings, 0);
}

TEST(Flapping, AServerThatIsUpAndDownEveryTenSecondsIsReadyAtMostOnceAMinute) {
  scenario plan{.name = "up and down", .clients = 0};
  for (auto begins = 0s; begins < 1h; begins += 20s) {
    plan.script.push_back(
        {begins, [](world& in, node&) { in.servers[0].program = process::gone; }});
    plan.script.push_back(
        {begins + 10s, [](world& in, node&) { in.servers[0].program = process::running; }});
  }
  plan.lasts = 1h;
  run(plan, 1, [&](world&, node& it, time_point) {
    const auto became_ready =
        std::count_if(it.changes.begin(), it.changes.end(),
                      [](const auto& each) { return each.to == health::state::ready; });
    EXPECT_LE(became_ready, 60) << "of 180 times that it was up: once a minute";
  });
}

}  // namespace
}  // namespace kubelane::sim
