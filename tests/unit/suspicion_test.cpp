#include "health/suspicion.hpp"

#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;

const time_point start{1h};

/// Counts suspicions while time passes in steps of 100 ms and each is answered well.
int suspicions(suspicion& it, time_point unanswered_since, std::uint64_t bytes_up, time_point from,
               milliseconds lasts) {
  int count = 0;
  for (auto now = from; now < from + lasts; now += 100ms) {
    if (!it.raise(unanswered_since, bytes_up, now)) continue;
    ++count;
    it.answered_well(now, bytes_up);
  }
  return count;
}

TEST(Suspicion, ArisesWhenBytesAreUnansweredForLongEnough) {
  suspicion it(300ms, 1s);
  EXPECT_FALSE(it.raise(start, 1, start + 299ms));
  EXPECT_EQ(it.raise(start, 1, start + 300ms), start + 300ms);
}

TEST(Suspicion, IsDatedWhenItAroseNotWhenItWasNoticed) {
  suspicion it(300ms, 1s);
  EXPECT_EQ(it.raise(start, 1, start + 399ms), start + 300ms);
}

TEST(Suspicion, DoesNotAriseWhileNothingIsUnanswered) {
  suspicion it(300ms, 1s);
  EXPECT_FALSE(it.raise({}, 1, start + 1h));
}

TEST(Suspicion, IsRaisedOnceUntilItsProbeWasAnswered) {
  suspicion it(300ms, 1s);
  EXPECT_TRUE(it.raise(start, 1, start + 1s));
  EXPECT_FALSE(it.raise(start, 1, start + 60s));
}

TEST(Suspicion, AsksAtMostTwicePerInterval) {
  suspicion it(300ms, 15s);
  int count = 0;
  std::uint64_t bytes = 0;
  // Each request is answered after 400 ms; the next one follows at once.
  for (auto now = start; now < start + 15s; now += 400ms) {
    bytes += 100;
    if (!it.raise(now, bytes, now + 390ms)) continue;
    ++count;
    it.confirmed();
  }
  EXPECT_EQ(count, 2);
}

TEST(Suspicion, PausesTwiceAsLongAfterEachGoodAnswer) {
  suspicion it(300ms, 100ms);
  // One window update, never answered: 0.3, 0.6, 1.2 … s apart.
  EXPECT_LE(suspicions(it, start, 1, start, 20s), 7);
  const auto later = suspicions(it, start, 1, start + 20s, 10min);
  EXPECT_GE(later, 3) << "but never gives up";
  EXPECT_LE(later, 12);
}

TEST(Suspicion, NewBytesOnABusyUpstreamAreSuspectedWithinSeconds) {
  suspicion it(300ms, 15s);
  suspicions(it, start, 1, start, 30min);
  const auto asked = start + 30min;
  EXPECT_TRUE(it.raise(asked, 2, asked + 5s));
}

TEST(Suspicion, AFailedProbeMakesTheNextOneCountAtOnce) {
  suspicion it(300ms, 100ms);
  suspicions(it, start, 1, start, 5s);
  it.confirmed();
  const auto asked = start + 10s;
  EXPECT_TRUE(it.raise(asked, 2, asked + 300ms));
}

TEST(Suspicion, AfterAMinuteOfQuietPatienceIsAsConfigured) {
  suspicion it(300ms, 1s);
  suspicions(it, start, 1, start, 5s);
  const auto asked = start + 70s;
  EXPECT_TRUE(it.raise(asked, 2, asked + 300ms));
}

TEST(Suspicion, NewSettingsApplyAtOnce) {
  suspicion it(300ms, 1s);
  it.configure(1s, 1s);
  EXPECT_FALSE(it.raise(start, 1, start + 999ms));
  EXPECT_TRUE(it.raise(start, 1, start + 1s));
}

}  // namespace
}  // namespace kubelane::health
