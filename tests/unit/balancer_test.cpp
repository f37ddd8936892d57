#include "proxy/balancer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace kubelane::proxy {
namespace {

using config::balance_policy;
using testing::Each;
using testing::ElementsAre;

constexpr auto every_policy = {balance_policy::least_connections, balance_policy::round_robin,
                               balance_policy::random};

std::function<double()> random01(unsigned seed = 1) {
  return [engine = std::mt19937(seed)]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

/// How often each of `choices` comes first in `times` orders.
std::vector<int> firsts(balance_policy policy, const std::vector<choice>& choices, int times) {
  balancer order(policy, random01());
  std::vector<int> count(choices.size(), 0);
  for (int i = 0; i < times; ++i) ++count[order.order(choices).front()];
  return count;
}

TEST(Balancer, GivesEveryChoiceOnce) {
  for (const auto policy : every_policy) {
    balancer order(policy, random01());
    const std::vector<choice> choices(7, choice{});
    for (int i = 0; i < 100; ++i)
      EXPECT_THAT(order.order(choices), testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6));
  }
}

TEST(Balancer, OfNothingIsNothing) {
  for (const auto policy : every_policy) {
    balancer order(policy, random01());
    EXPECT_TRUE(order.order({}).empty());
  }
}

TEST(Balancer, TiersComeInOrderWhateverTheLoad) {
  for (const auto policy : every_policy) {
    balancer order(policy, random01());
    const std::vector<choice> choices = {
        {.tier = 5}, {.tier = 3}, {.tier = 1, .load = 900}, {.tier = 4}, {.tier = 2}};
    EXPECT_THAT(order.order(choices), ElementsAre(2, 4, 1, 3, 0));
  }
}

TEST(Balancer, TheDoubtfulAreLastInTheirTier) {
  for (const auto policy : every_policy) {
    balancer order(policy, random01());
    const std::vector<choice> choices = {
        {.tier = 1, .doubtful = true, .same_zone = true}, {.tier = 2}, {.tier = 1, .load = 50}};
    EXPECT_THAT(order.order(choices), ElementsAre(2, 0, 1));
  }
}

TEST(Balancer, TheSameZoneComesFirstWithinATier) {
  for (const auto policy : every_policy) {
    balancer order(policy, random01());
    const std::vector<choice> choices = {
        {.tier = 1, .load = 0}, {.tier = 1, .same_zone = true, .load = 9}, {.tier = 2}};
    EXPECT_THAT(order.order(choices), ElementsAre(1, 0, 2));
  }
}

TEST(Balancer, LeastConnectionsPicksTheEmptiest) {
  balancer order(balance_policy::least_connections, random01());
  const std::vector<choice> choices = {{.load = 10}, {.load = 0}, {.load = 5}};
  EXPECT_THAT(order.order(choices), ElementsAre(1, 2, 0));
}

TEST(Balancer, LeastConnectionsBreaksTiesAtRandom) {
  const auto count = firsts(balance_policy::least_connections, std::vector<choice>(3), 3000);
  EXPECT_THAT(count, Each(testing::AllOf(testing::Ge(900), testing::Le(1100))));
}

TEST(Balancer, RandomSharesEvenlyWhateverTheLoad) {
  const std::vector<choice> choices = {{.load = 100}, {.load = 0}, {.load = 5}};
  EXPECT_THAT(firsts(balance_policy::random, choices, 3000),
              Each(testing::AllOf(testing::Ge(900), testing::Le(1100))));
}

TEST(Balancer, RoundRobinTakesTurns) {
  balancer order(balance_policy::round_robin, random01());
  const std::vector<choice> choices(3);
  EXPECT_THAT(order.order(choices), ElementsAre(0, 1, 2));
  EXPECT_THAT(order.order(choices), ElementsAre(1, 2, 0));
  EXPECT_THAT(order.order(choices), ElementsAre(2, 0, 1));
}

TEST(Balancer, RoundRobinSharesEvenlyWhenOneIsDown) {
  const std::vector<choice> choices = {{.tier = 4}, {}, {}};
  EXPECT_THAT(firsts(balance_policy::round_robin, choices, 1000), ElementsAre(0, 500, 500));
}

TEST(Balancer, SlowStartGivesAShareThatGrows) {
  for (const double share : {0.1, 0.5, 0.9}) {
    const std::vector<choice> choices = {{.load = 0, .share = share}, {.load = 50}, {.load = 50}};
    const auto count = firsts(balance_policy::least_connections, choices, 2000);
    EXPECT_NEAR(count[0], 2000 * share, 100) << share;
  }
}

TEST(Balancer, SlowStartEndsAtTheFullShare) {
  const std::vector<choice> choices = {{.load = 0, .share = 1.0}, {.load = 50}, {.load = 50}};
  EXPECT_EQ(firsts(balance_policy::least_connections, choices, 100)[0], 100);
}

TEST(Balancer, OneInSlowStartIsStillBeforeTheDoubtfulAndTheNextTier) {
  balancer order(balance_policy::least_connections, [] { return 0.99; });
  const std::vector<choice> choices = {
      {.doubtful = true}, {.share = 0.1}, {.load = 9}, {.tier = 2}};
  EXPECT_THAT(order.order(choices), ElementsAre(2, 1, 0, 3));
}

TEST(Balancer, AllThatRiseTogetherHaveTheirFullShare) {
  const std::vector<choice> choices(3, choice{.share = 0.1});
  EXPECT_THAT(firsts(balance_policy::least_connections, choices, 3000),
              Each(testing::AllOf(testing::Ge(900), testing::Le(1100))));
}

TEST(Balancer, ADoubtfulNeighbourDoesNotHoldASlowStartBack) {
  balancer order(balance_policy::least_connections, [] { return 0.99; });
  const std::vector<choice> choices = {{.share = 0.1}, {.doubtful = true}};
  EXPECT_THAT(order.order(choices), ElementsAre(0, 1));
}

TEST(Balancer, SlowStartCrossesZonesToo) {
  balancer order(balance_policy::least_connections, [] { return 0.99; });
  const std::vector<choice> choices = {{.same_zone = true, .share = 0.1}, {.load = 9}};
  EXPECT_THAT(order.order(choices), ElementsAre(1, 0));
}

}  // namespace
}  // namespace kubelane::proxy
