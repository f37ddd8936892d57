// Every metric: what it is called, what type it has, how many series a worker has.

#include "telemetry/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kubelane::telemetry {
namespace {

/// What an exposition says, taken apart.
struct parsed {
  std::map<std::string, std::string> types;  // by family
  std::map<std::string, std::string> helps;
  std::vector<std::string> series;  // name and labels
};

parsed parse(const std::string& text) {
  parsed result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, what, name, rest;
    if (line.rfind("# ", 0) != 0) {
      result.series.push_back(line.substr(0, line.rfind(' ')));
      continue;
    }
    words >> mark >> what >> name;
    std::getline(words >> std::ws, rest);
    (what == "TYPE" ? result.types : result.helps)[name] = rest;
  }
  return result;
}

/// Name -> type, from the table of docs/metrics.md.
std::map<std::string, std::string> documented() {
  std::map<std::string, std::string> result;
  std::ifstream file(KUBELANE_SOURCE "/docs/metrics.md");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    std::istringstream cells(line);
    std::string mark, name, type;
    cells >> mark >> name >> mark >> type;
    result[name.substr(1, name.size() - 2)] = type;
  }
  return result;
}

constexpr std::array upstreams = {"cp1", "cp2", "cp3"};

/// A worker whose three upstreams are well and have clients.
void live_a_calm_day(metrics& all) {
  for (const char* name : upstreams) {
    all.state(name, "ready");
    all.connections(name, 7);
    all.bytes_total(name, 1, 1);
    for (const char* end : {"client_closed", "server_closed"}) all.connection_ended(name, end);
    all.dial_ended(name, "connected", 0.001);
    all.probe_ended(name, "passed", 0.001);
    all.transition(name, "ready");
    all.certificate_expiry(name, 1.8e9);
  }
  all.quorum(3, 2, 3, 1);
}

/// Each kind of fault on one upstream or the other.
void live_through_every_fault(metrics& all) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> faults = {
      {"cp1", {"refused", "lost", "refused", "server_reset", "shutdown", "shutting_down"}},
      {"cp2", {"hung", "timed_out", "timed_out", "reset_hung", "hung", "slow"}},
      {"cp3", {"not_ready", "not_ready", "timed_out", "drained", "etcd", "dead"}},
  };
  for (const auto& [name, of] : faults) {
    all.transition(name, of[0]);
    all.probe_ended(name, of[1], 0.5);
    all.dial_ended(name, of[2], 0.5);
    all.connection_ended(name, of[3]);
    all.connection_reset(name, of[4]);
    all.transition(name, of[5]);
  }
  all.probe_ended("cp3", "host_silent", 0.5);
  all.connection_ended("cp3", "reset_dead");
  all.connection_reset("cp3", "dead");
  all.connection_ended("none", "no_upstream");
  all.connection_rejected("all_down");
  for (const char* kind : {"dial", "first_flight"}) all.hedged(kind);
}

TEST(Metrics, OneWorkerWithThreeUpstreamsHasAtMost150Series) {
  metrics all("1.2.3");
  live_a_calm_day(all);
  EXPECT_LE(parse(all.render()).series.size(), 125U) << "on a calm day";
  live_through_every_fault(all);
  EXPECT_LE(parse(all.render()).series.size(), 150U) << "after every kind of fault";
}

TEST(Metrics, NoSeriesIsShownTwice) {
  metrics all("1.2.3");
  live_a_calm_day(all);
  live_through_every_fault(all);
  const auto series = parse(all.render()).series;
  EXPECT_EQ(std::set<std::string>(series.begin(), series.end()).size(), series.size());
}

TEST(Metrics, NamesFollowThePrometheusConventions) {
  metrics all("1");
  const auto seen = parse(all.render());
  for (const auto& [name, type] : seen.types) {
    EXPECT_TRUE(name.rfind("kubelane_", 0) == 0 || name.rfind("process_", 0) == 0) << name;
    EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
    EXPECT_TRUE(type != "histogram" || name.ends_with("_seconds")) << name;
    for (const char* reserved : {"_count", "_sum", "_bucket", "_ms", "_milliseconds", "_percent"})
      EXPECT_FALSE(name.ends_with(reserved)) << name;
    EXPECT_THAT(seen.helps.at(name), ::testing::EndsWith(".")) << name;
  }
  EXPECT_EQ(seen.types.size(), seen.helps.size());
}

TEST(Metrics, TheTableOfTheDocumentationIsWhatIsShownWithItsTypes) {
  EXPECT_EQ(parse(metrics("1").render()).types, documented());
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

TEST(Metrics, BucketsOfAHistogramAddUp) {
  metrics all("1");
  for (const double seconds : {0.01, 0.05, 0.3, 7.0}) all.dial_ended("cp1", "connected", seconds);
  const auto text = all.render();
  for (const char* line :
       {R"(_bucket{le="0.01",upstream="cp1"} 1)", R"(_bucket{le="0.1",upstream="cp1"} 2)",
        R"(_bucket{le="0.5",upstream="cp1"} 3)", R"(_bucket{le="+Inf",upstream="cp1"} 4)",
        R"(_sum{upstream="cp1"} 7.36)", R"(_count{upstream="cp1"} 4)"})
    EXPECT_THAT(text,
                ::testing::HasSubstr(std::string("kubelane_dial_duration_seconds") + line + '\n'));
}

TEST(Metrics, ALabelsValueCannotBreakTheFormat) {
  metrics all("1");
  all.connections("a\"b\\c\nd", 1);
  EXPECT_THAT(all.render(),
              ::testing::HasSubstr(R"(kubelane_upstream_connections{upstream="a\"b\\c\nd"} 1)"));
}

}  // namespace
}  // namespace kubelane::telemetry
