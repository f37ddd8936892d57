#pragma once

#include "config/config.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace kubelane::proxy {

/// What the balancer knows of one upstream.
struct choice {
  int tier = 1;           ///< 1 is tried first
  bool doubtful = false;  ///< last in its tier
  bool same_zone = false;
  std::size_t load = 0;  ///< its connections
  double share = 1.0;    ///< slow start: 0.1..1 of its share of new connections; 1: all of it
};

/// Puts upstreams in the order to try: tier, doubtful last, this node's zone first, then the
/// policy.
///
/// An upstream in slow start keeps its place with probability `share`, else it goes behind those of
/// its tier that are not; so all that rise together have their full share at once. Pure.
class balancer {
 public:
  /// `random01` gives uniform numbers in [0, 1).
  balancer(config::balance_policy policy, std::function<double()> random01);
  void configure(config::balance_policy policy) { policy_ = policy; }

  /// Indexes into `choices`, each once. Valid until the next call.
  const std::vector<std::size_t>& order(std::span<const choice> choices);

 private:
  struct place {
    std::size_t index;
    int tier;
    int standing;  // 0 in place, 1 behind for slow start, 2 doubtful
    bool far;
    std::size_t load;
    double tie;
    bool alike(const place& other) const;
  };
  place place_of(std::size_t index, const choice& of, bool others_settled);
  void rotate();

  config::balance_policy policy_;
  std::function<double()> random01_;
  std::size_t turn_ = 0;
  std::vector<place> places_;
  std::vector<std::size_t> order_;
};

}  // namespace kubelane::proxy
