#pragma once

#include "node.hpp"

#include <functional>
#include <string>
#include <vector>

namespace kubelane::sim {

/// Something that happens so long after the start of the fault.
struct happening {
  milliseconds after;
  std::function<void(world&, node&)> what;
};

/// What a scenario is about: a fleet, its clients, and a script.
struct scenario {
  std::string name;
  config::config settings = {};
  std::size_t servers = 3;
  int clients = 12;
  milliseconds every{0};  ///< 0: idle; else busy
  milliseconds fresh_every{0};
  std::vector<happening> script = {};
  milliseconds lasts{30'000};
};

/// Runs it with one seed, after a warm-up of random length; `judge` sees the end and when the fault
/// began.
void run(const scenario& what, std::uint64_t seed,
         const std::function<void(world&, node&, time_point)>& judge);

/// As many seeds as a test should run: fewer under sanitizers.
int seeds();

}  // namespace kubelane::sim
