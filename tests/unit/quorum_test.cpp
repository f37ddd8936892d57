#include "health/quorum.hpp"

#include <gtest/gtest.h>

namespace kubelane::health::quorum {
namespace {

static_assert(majority(1) == 1 && majority(2) == 2 && majority(3) == 2 && majority(7) == 4);

TEST(Quorum, MajorityIsMoreThanHalf) {
  for (int members = 1; members <= 101; ++members) {
    EXPECT_GT(2 * majority(members), members);
    EXPECT_LE(2 * (majority(members) - 1), members);
  }
}

TEST(Quorum, AnEvenNumberToleratesNoMoreThanOneLess) {
  EXPECT_EQ(tolerated(1), 0);
  EXPECT_EQ(tolerated(2), 0);
  EXPECT_EQ(tolerated(3), 1);
  EXPECT_EQ(tolerated(4), 1);
  EXPECT_EQ(tolerated(5), 2);
  EXPECT_EQ(tolerated(6), 2);
  EXPECT_EQ(tolerated(7), 3);
}

TEST(Quorum, SpareCountsDownToWhatIsMissing) {
  EXPECT_EQ(spare(5, 5), 2);
  EXPECT_EQ(spare(5, 3), 0);
  EXPECT_EQ(spare(5, 1), -2);
}

TEST(Quorum, IsMetByAMajority) {
  EXPECT_TRUE(met(3, 2));
  EXPECT_FALSE(met(3, 1));
  EXPECT_FALSE(met(2, 1));
  EXPECT_TRUE(met(1, 1));
}

TEST(Quorum, AnEmptyClusterHasNone) {
  EXPECT_EQ(majority(0), 0);
  EXPECT_EQ(tolerated(0), 0);
  EXPECT_FALSE(met(0, 0));
}

}  // namespace
}  // namespace kubelane::health::quorum
