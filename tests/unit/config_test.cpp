#include "config/config.hpp"

#include <gtest/gtest.h>

namespace kubelane::config {
namespace {

using namespace std::chrono_literals;

TEST(ConfigProblem, IsShownAsFileLineColumnPathAndMessage) {
  const problem it{{9, 15}, "upstreams[1].address", "\"10.0.0.12:70000\": port is not in 1..65535"};
  EXPECT_EQ(describe("k.yaml", it, severity::error),
            "k.yaml:9:15: upstreams[1].address: \"10.0.0.12:70000\": port is not in 1..65535");
  EXPECT_EQ(describe("k.yaml", {{2, 1}, "zone", "is odd"}, severity::warning),
            "k.yaml:2:1: zone: warning: is odd");
}

TEST(ConfigProblem, WithoutAPlaceIsShownAtTheStart) {
  EXPECT_EQ(describe("k.yaml", {{}, "file", "is gone"}, severity::error),
            "k.yaml:1:1: file: is gone");
}

TEST(ConfigDuration, IsShownInTheLargestUnitWithoutAFraction) {
  EXPECT_EQ(to_string(0ms), "0s");
  EXPECT_EQ(to_string(250ms), "250ms");
  EXPECT_EQ(to_string(3500ms), "3500ms");
  EXPECT_EQ(to_string(90s), "90s");
  EXPECT_EQ(to_string(10min), "10m");
  EXPECT_EQ(to_string(24h), "24h");
}

TEST(ConfigQuote, EscapesWhatWouldBreakALine) {
  EXPECT_EQ(quote("a\"b\\c\nd\x1b"), R"("a\"b\\c\x0ad\x1b")");
}

TEST(ConfigQuote, ShortensBetweenCharacters) {
  EXPECT_EQ(quote(std::string(80, 'x')), "\"" + std::string(80, 'x') + "\"");
  EXPECT_EQ(quote(std::string(81, 'x')), "\"" + std::string(80, 'x') + "...\"");
  EXPECT_EQ(quote(std::string(79, 'x') + "\xe2\x82\xac!"), "\"" + std::string(79, 'x') + "...\"");
}

TEST(ConfigProbeInterval, GrowsWithTheFleetWithin1To15Seconds) {
  config it;
  it.cluster.nodes = 1;
  EXPECT_EQ(probe_interval(it), 1s);
  it.cluster.nodes = 100;
  EXPECT_EQ(probe_interval(it), 1s);
  it.cluster.nodes = 1500;
  EXPECT_EQ(probe_interval(it), 5s);
  it.cluster.nodes = 100'000;
  EXPECT_EQ(probe_interval(it), 15s);
}

TEST(ConfigProbeInterval, IsTakenAsSet) {
  config it;
  it.health.interval = 250ms;
  EXPECT_EQ(probe_interval(it), 250ms);
}

TEST(ConfigHungReset, IsLaterInFleetsAbove450NodesByAtMost10Seconds) {
  config it;
  it.cluster.nodes = 450;
  EXPECT_EQ(hung_reset_after(it), 3s);
  it.cluster.nodes = 900;
  EXPECT_EQ(hung_reset_after(it), 6s);
  it.cluster.nodes = 5000;
  EXPECT_EQ(hung_reset_after(it), 10s);
  it.failover.reset_after = 20s;
  EXPECT_EQ(hung_reset_after(it), 20s);
}

TEST(ConfigHungReset, IsSpreadOverAMillisecondPerNode) {
  config it;
  it.cluster.nodes = 5000;
  EXPECT_EQ(hung_reset_spread(it), 5s);
}

}  // namespace
}  // namespace kubelane::config
