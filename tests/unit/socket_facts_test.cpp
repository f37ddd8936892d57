#include "net/socket_facts.hpp"

#include <gtest/gtest.h>

namespace kubelane::net {
namespace {

using namespace std::chrono_literals;

constexpr auto limit = 30s;

TEST(SocketFacts, RetransmissionsInVainForLongAreASilence) {
  const socket_facts facts{.unacknowledged_segments = 1,
                           .unsent_bytes = 0,
                           .retransmits = 7,
                           .probes = 0,
                           .since_acknowledgement = 31s};
  EXPECT_TRUE(is_silent(facts, 31s, limit));
  EXPECT_FALSE(is_silent(facts, 29s, limit)) << "it was idle before: there was nothing to answer";
}

TEST(SocketFacts, AnAcknowledgementMeanwhileIsNone) {
  EXPECT_FALSE(is_silent({.unacknowledged_segments = 10,
                          .unsent_bytes = 1000,
                          .retransmits = 2,
                          .probes = 0,
                          .since_acknowledgement = 3s},
                         60s, limit));
}

TEST(SocketFacts, AClosedWindowWhoseProbesAreAnsweredIsNone) {
  EXPECT_FALSE(is_silent({.unacknowledged_segments = 0,
                          .unsent_bytes = 100'000,
                          .retransmits = 0,
                          .probes = 1,
                          .since_acknowledgement = 100s},
                         1h, limit));
}

TEST(SocketFacts, AClosedWindowWhoseProbesAreNotAnsweredIsASilence) {
  EXPECT_TRUE(is_silent({.unacknowledged_segments = 0,
                         .unsent_bytes = 100'000,
                         .retransmits = 0,
                         .probes = 2,
                         .since_acknowledgement = 100s},
                        1h, limit));
}

TEST(SocketFacts, WhoOwesNothingIsNotSilent) {
  EXPECT_FALSE(is_silent({.unacknowledged_segments = 0,
                          .unsent_bytes = 0,
                          .retransmits = 0,
                          .probes = 0,
                          .since_acknowledgement = 24h},
                         24h, limit));
}

}  // namespace
}  // namespace kubelane::net
