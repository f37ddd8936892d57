#include "telemetry/log.hpp"
#include "telemetry/metrics.hpp"
#include "telemetry/process.hpp"

#include <gtest/gtest.h>

namespace kubelane::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(LogFormat, TextIsTheEventInWordsThenKeyValue) {
  EXPECT_EQ(format_text("upstream refused", {{"upstream", "cp1"}, {"from", "ready"}}),
            "upstream refused upstream=cp1 from=ready");
}

TEST(LogFormat, ValuesWithSpacesQuotesOrControlsAreQuotedSoThatALineStaysALine) {
  EXPECT_EQ(format_text("e", {{"cause", "two words"}}), R"(e cause="two words")");
  EXPECT_EQ(format_text("e", {{"cause", "a\nb"}}), R"(e cause="a\nb")");
  EXPECT_EQ(format_text("e", {{"cause", R"(say "x")"}}), R"(e cause="say \"x\"")");
  EXPECT_EQ(format_text("e", {{"cause", ""}}), R"(e cause="")");
}

TEST(LogFormat, JsonIsOneObjectWithTimeLevelEventAndTheFields) {
  const auto line = format_json("warn", "upstream hung", {{"upstream", "cp\"1"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"("level":"warn","event":"upstream hung","upstream":"cp\"1"})"),
            std::string::npos)
      << line;
}

TEST(RateLimit, ABurstPassesAndTheRestIsCountedInTheNextThatPasses) {
  rate_limit limit(2, 10s);
  const rate_limit::time_point start{1h};
  EXPECT_TRUE(limit.check("a", start).pass);
  EXPECT_TRUE(limit.check("a", start + 1s).pass);
  EXPECT_FALSE(limit.check("a", start + 2s).pass);
  EXPECT_FALSE(limit.check("a", start + 9s).pass);
  const auto later = limit.check("a", start + 10s);
  EXPECT_TRUE(later.pass);
  EXPECT_EQ(later.suppressed, 2);
}

TEST(RateLimit, KeysDoNotTakeEachOthersPlace) {
  rate_limit limit(1, 10s);
  const rate_limit::time_point start{1h};
  EXPECT_TRUE(limit.check("a", start).pass);
  EXPECT_TRUE(limit.check("b", start).pass);
  EXPECT_FALSE(limit.check("a", start).pass);
}

TEST(Metrics, ExactlyOneStateOfAnUpstreamIsOne) {
  metrics all("1.2.3");
  all.state("cp1", "ready");
  all.state("cp1", "hung");
  const auto text = all.render();
  EXPECT_NE(text.find(R"(kubelane_upstream_state{state="hung",upstream="cp1"} 1)"),
            std::string::npos);
  EXPECT_NE(text.find(R"(kubelane_upstream_state{state="ready",upstream="cp1"} 0)"),
            std::string::npos);
}

TEST(Metrics, TotalsHandedOverNeverFall) {
  metrics all("1");
  all.bytes_total("cp1", 10, 20);
  all.bytes_total("cp1", 5, 30);
  const auto text = all.render();
  EXPECT_NE(text.find(R"(kubelane_bytes_total{direction="up",upstream="cp1"} 10)"),
            std::string::npos);
  EXPECT_NE(text.find(R"(kubelane_bytes_total{direction="down",upstream="cp1"} 30)"),
            std::string::npos);
}

TEST(Metrics, AForgottenUpstreamLeavesNoSeriesAndOthersKeepTheirs) {
  metrics all("1");
  for (const char* name : {"cp1", "cp2"}) {
    all.state(name, "ready");
    all.connections(name, 3);
    all.bytes_total(name, 1, 1);
    all.connection_ended(name, "client_closed");
    all.dial_ended(name, "connected", 0.001);
    all.probe_ended(name, "passed", 0.001);
    all.transition(name, "ready");
    all.connection_reset(name, "hung");
    all.would_reset(name, "hung", 2);
    all.certificate_expiry(name, 1e9);
  }
  all.forget("cp1");
  const auto text = all.render();
  EXPECT_EQ(text.find("cp1"), std::string::npos);
  EXPECT_NE(text.find("cp2"), std::string::npos);
}

TEST(Metrics, QuorumVanishesWhenEtcdIsNotStacked) {
  metrics all("1");
  all.quorum(3, 2, 2, 0);
  EXPECT_NE(all.render().find(R"(kubelane_control_plane_quorum{kind="majority"} 2)"),
            std::string::npos);
  all.no_quorum();
  EXPECT_EQ(all.render().find("quorum{"), std::string::npos);
}

TEST(ProcessFigures, AreThisProcessOwn) {
  const auto figures = read_process_figures();
  ASSERT_TRUE(figures);
  EXPECT_GT(figures->resident_bytes, 1'000'000U);
  EXPECT_GE(figures->virtual_bytes, figures->resident_bytes);
  EXPECT_GE(figures->open_descriptors, 3U);
  EXPECT_GT(figures->max_descriptors, figures->open_descriptors);
  EXPECT_GT(figures->start_time_seconds, 1.7e9);
}

}  // namespace
}  // namespace kubelane::telemetry
