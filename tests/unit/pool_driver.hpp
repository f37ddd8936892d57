#pragma once

#include "proxy/upstream_pool.hpp"

#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kubelane::test {

using health::milliseconds;
using health::outcome;
using health::state;
using health::time_point;

/// A pool in virtual time whose upstreams are probed as the checker does it: each has an outcome
/// that all its probes have until the test sets another.
class pool_driver {
 public:
  enum class start {
    unprobed,
    ready,  ///< all of them, with five connections on each; nothing seen so far
  };
  explicit pool_driver(start from, config::config with = {},
                       const std::vector<std::string>& names = {"cp1", "cp2", "cp3"});
  pool_driver(const pool_driver&) = delete;
  pool_driver& operator=(const pool_driver&) = delete;

  /// Its probes that end from now on end like this. A time-out takes 500 ms, anything else 2 ms.
  void answers(const std::string& name, outcome result, bool etcd_failed = false);
  void all_answer(outcome result, bool etcd_failed = false);
  /// Passes time: probes, and a tick every 100 ms.
  void run(milliseconds lasts);
  /// Runs until connections are told to leave; how long that took, or nothing within `limit`.
  std::optional<milliseconds> time_to_leave(milliseconds limit);
  /// Makes the set equal these (and keeps running).
  void reconcile(const std::vector<std::string>& names);

  void open(const std::string& name, int connections);
  void close(const std::string& name, int connections);
  /// Bytes come from it, or are sent to it, now.
  void hear(const std::string& name);
  void send(const std::string& name);

  proxy::upstream_id id(const std::string& name) const { return ids.at(name); }
  proxy::upstream_status look(const std::string& name) const;
  state state_of(const std::string& name) const { return look(name).state; }
  proxy::pool_status status() const { return pool.status(now); }
  /// The names of the candidates in order.
  std::vector<std::string> order();

  /// The effects since the last call of `forget`, those of one kind.
  template <class Effect>
  std::vector<Effect> seen() const {
    std::vector<Effect> found;
    for (const auto& each : effects)
      if (const auto* is = std::get_if<Effect>(&each)) found.push_back(*is);
    return found;
  }
  /// Connections that were reset or drained, sorted, as `etcd cp2, hung cp1`.
  std::string closings() const;
  void forget() { effects.clear(); }
  void take();

  config::config settings;
  time_point now{std::chrono::hours(1)};
  proxy::upstream_pool pool;
  std::map<std::string, proxy::upstream_id> ids;
  std::vector<proxy::effect> effects;
  milliseconds loop_lag{0};
  std::function<void(const proxy::effect&)> on_effect = [](const proxy::effect&) {};
  /// Every probe so far.
  std::vector<std::pair<proxy::upstream_id, health::probe_report>> reports;

 private:
  struct prober {
    outcome result = outcome::passed;
    bool etcd_failed = false;
    time_point next{};
    std::optional<time_point> started = {};
  };
  void step(const std::string& name, prober& it);
  std::string name_of(proxy::upstream_id id) const;

  std::mt19937 random_{7};
  std::map<std::string, prober> probers_;
  time_point next_tick_ = now;
};

}  // namespace kubelane::test
