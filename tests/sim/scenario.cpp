#include "scenario.hpp"

#include <algorithm>

namespace kubelane::sim {

using namespace std::chrono_literals;

void run(const scenario& what, std::uint64_t seed,
         const std::function<void(world&, node&, time_point)>& judge) {
  world in(seed);
  in.servers.resize(what.servers);
  node worker(in, what.settings);
  worker.run_until(in.now + 1s);
  worker.connect_clients(what.clients, what.every);
  const auto interval = config::probe_interval(what.settings);
  worker.run_until(in.now + interval + in.random_in(0ms, 2 * interval));
  worker.changes.clear();
  worker.fresh_every = what.fresh_every;
  const auto start = in.now;
  auto script = what.script;
  std::stable_sort(script.begin(), script.end(),
                   [](const happening& a, const happening& b) { return a.after < b.after; });
  for (const auto& each : script) {
    worker.run_until(start + each.after);
    each.what(in, worker);
  }
  worker.run_until(start + what.lasts);
  judge(in, worker, start);
}

int seeds() {
#if defined(__SANITIZE_ADDRESS__)
  return 20;
#else
  return 200;
#endif
}

}  // namespace kubelane::sim
