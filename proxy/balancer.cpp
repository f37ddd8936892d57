#include "proxy/balancer.hpp"

#include <algorithm>
#include <tuple>

namespace kubelane::proxy {

balancer::balancer(config::balance_policy policy, std::function<double()> random01)
    : policy_(policy), random01_(std::move(random01)) {}

bool balancer::place::alike(const place& other) const {
  return std::tie(tier, standing, far) == std::tie(other.tier, other.standing, other.far);
}

balancer::place balancer::place_of(std::size_t index, const choice& of, bool others_settled) {
  place made{index, of.tier, of.doubtful ? 2 : 0, !of.same_zone, 0, 0.0};
  if (!of.doubtful && of.share < 1.0 && others_settled && random01_() >= of.share)
    made.standing = 1;
  if (policy_ == config::balance_policy::least_connections) made.load = of.load;
  // Round robin keeps the given order, and turns it afterwards.
  if (policy_ != config::balance_policy::round_robin) made.tie = random01_();
  return made;
}

const std::vector<std::size_t>& balancer::order(std::span<const choice> choices) {
  places_.clear();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const auto& of = choices[i];
    const bool settled =
        of.share < 1.0 && std::any_of(choices.begin(), choices.end(), [&](const choice& other) {
          return other.tier == of.tier && other.share >= 1.0;
        });
    places_.push_back(place_of(i, of, settled));
  }
  std::sort(places_.begin(), places_.end(), [](const place& a, const place& b) {
    return std::tie(a.tier, a.standing, a.far, a.load, a.tie, a.index) <
           std::tie(b.tier, b.standing, b.far, b.load, b.tie, b.index);
  });
  if (policy_ == config::balance_policy::round_robin) rotate();
  order_.clear();
  for (const auto& each : places_) order_.push_back(each.index);
  return order_;
}

// Turns each group of equals by one more with every call, so that the members of a group share
// evenly whatever else is in the list.
void balancer::rotate() {
  auto first = places_.begin();
  while (first != places_.end()) {
    const auto last = std::find_if_not(first, places_.end(),
                                       [&](const place& other) { return first->alike(other); });
    const auto by = static_cast<std::ptrdiff_t>(turn_ % static_cast<std::size_t>(last - first));
    std::rotate(first, first + by, last);
    first = last;
  }
  ++turn_;
}

}  // namespace kubelane::proxy
