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

TEST(Quorum, ALossLeavesTheMembershipARemovalDoesNot) {
  EXPECT_EQ(lose({5, 5}, 2), (standing{5, 3}));
  EXPECT_EQ(remove({5, 4}, member_is::up), (standing{4, 3}));
  EXPECT_EQ(remove({5, 4}, member_is::down), (standing{4, 4}));
  EXPECT_EQ(add({3, 3}), (standing{4, 3}));
}

TEST(Quorum, RemovingALivingMemberBesideADeadOneLosesIt) {
  EXPECT_TRUE(remove({3, 2}, member_is::down).met());
  EXPECT_FALSE(remove({3, 2}, member_is::up).met());
  EXPECT_FALSE(remove({1, 1}, member_is::up).met());
}

TEST(Quorum, IsSaidInOneSentence) {
  EXPECT_EQ(in_words({3, 3}), "3 of 3 ready: quorum survives one failure");
  EXPECT_EQ(in_words({5, 5}), "5 of 5 ready: quorum survives two failures");
  EXPECT_EQ(in_words({5, 4}), "4 of 5 ready: quorum survives one more failure");
  EXPECT_EQ(in_words({3, 2}), "2 of 3 ready: one more failure loses quorum");
  EXPECT_EQ(in_words({1, 1}), "1 of 1 ready: one failure loses quorum");
  EXPECT_EQ(in_words({2, 2}, "up"), "2 of 2 up: one failure loses quorum");
  EXPECT_EQ(in_words({5, 1}), "1 of 5 ready: quorum is lost, two short of a majority");
  EXPECT_EQ(in_words({}), "no members");
}

TEST(Quorum, SaysWhyARemovalMustNotBe) {
  EXPECT_EQ(removal_in_words({2, 1}),
            "of the 2 members left, 1 would answer, and a majority is 2: nothing could be written");
  EXPECT_EQ(removal_in_words({0, 0}), "it is the only member: nothing would be left");
}

// One zone or two never survive the loss of one; three do, but for four members, of which one zone
// has two.
TEST(Quorum, OnlyThreeZonesSurviveTheLossOfOne) {
  for (int members = 1; members <= 9; ++members)
    for (int zones = 1; zones <= 2; ++zones)
      EXPECT_FALSE(lose({members, members}, largest_share(members, zones)).met()) << members;
  for (const int members : {3, 5, 6, 7, 9})
    EXPECT_TRUE(lose({members, members}, largest_share(members, 3)).met()) << members;
  for (const int members : {1, 2, 4})
    EXPECT_FALSE(lose({members, members}, largest_share(members, 3)).met()) << members;
}

}  // namespace
}  // namespace kubelane::health::quorum
