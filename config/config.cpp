#include "config/config.hpp"

#include <algorithm>

namespace kubelane::config {

using namespace std::chrono_literals;

milliseconds probe_interval(const config& from) {
  if (from.health.interval) return *from.health.interval;
  return std::clamp<milliseconds>(milliseconds(from.cluster.nodes * 1000LL / 300), 1s, 15s);
}

milliseconds hung_reset_after(const config& from) {
  if (from.cluster.nodes <= 450) return from.failover.reset_after;
  const auto fleet = std::min<milliseconds>(milliseconds(from.cluster.nodes * 1000LL / 150), 10s);
  return std::max(from.failover.reset_after, fleet);
}

milliseconds hung_reset_spread(const config& from) { return milliseconds(from.cluster.nodes); }

}  // namespace kubelane::config
