#include "config/diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kubelane::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

upstream server(std::string name, std::string_view address) {
  return {std::move(name), *net::parse_host_port(address, 6443), {}, {}};
}

config with(std::vector<upstream> upstreams) {
  config result;
  result.upstreams = std::move(upstreams);
  return result;
}

std::vector<std::string> names(const std::vector<upstream>& list) {
  std::vector<std::string> result;
  for (const auto& each : list) result.push_back(each.name);
  return result;
}

TEST(ConfigDiff, EqualConfigurationsDifferInNothing) {
  const auto it = with({server("cp1", "10.0.0.1")});
  EXPECT_TRUE(diff(it, it).empty());
  EXPECT_THAT(names(diff(it, it).kept), ElementsAre("cp1"));
}

TEST(ConfigDiff, UpstreamsAreAddedRemovedAndKeptByAddress) {
  const auto from = with({server("cp1", "10.0.0.1"), server("cp2", "10.0.0.2")});
  const auto to = with({server("cp3", "10.0.0.3"), server("cp2", "10.0.0.2")});
  const auto found = diff(from, to);
  EXPECT_THAT(names(found.added), ElementsAre("cp3"));
  EXPECT_THAT(names(found.removed), ElementsAre("cp1"));
  EXPECT_THAT(names(found.kept), ElementsAre("cp2"));
  EXPECT_THAT(found.live, IsEmpty());
  EXPECT_FALSE(found.empty());
}

TEST(ConfigDiff, AnotherPortIsAnotherUpstream) {
  const auto found = diff(with({server("cp1", "10.0.0.1")}), with({server("cp1", "10.0.0.1:443")}));
  EXPECT_EQ(found.added.size(), 1u);
  EXPECT_EQ(found.removed.size(), 1u);
}

TEST(ConfigDiff, TheOrderOfUpstreamsIsNoDifference) {
  const auto a = server("cp1", "10.0.0.1");
  const auto b = server("cp2", "10.0.0.2");
  EXPECT_TRUE(diff(with({a, b}), with({b, a})).empty());
}

TEST(ConfigDiff, ANewNameOrZoneKeepsTheUpstreamAndIsNamed) {
  auto to = server("first", "10.0.0.1");
  to.zone = "a";
  const auto found = diff(with({server("cp1", "10.0.0.1")}), with({to}));
  EXPECT_THAT(names(found.kept), ElementsAre("first"));
  EXPECT_THAT(found.live, ElementsAre("upstream 10.0.0.1:6443 name: \"cp1\" -> \"first\"",
                                      "upstream 10.0.0.1:6443 zone: \"\" -> \"a\""));
}

TEST(ConfigDiff, ALiveSettingIsNamedWithBothValues) {
  const config from;
  config to;
  to.health.timeout = std::chrono::seconds(1);
  to.health.interval = std::chrono::seconds(2);
  const auto found = diff(from, to);
  EXPECT_THAT(found.live,
              ElementsAre("health.interval: auto -> 2s", "health.timeout: 500ms -> 1s"));
  EXPECT_THAT(found.restart, IsEmpty());
}

TEST(ConfigDiff, ListenersNeedARestart) {
  const config from;
  config to;
  to.listen = {*net::parse_endpoint("127.0.0.1:7443", 0)};
  to.admin_listen = *net::parse_endpoint("127.0.0.1:9000", 0);
  to.metrics_listen = {*net::parse_endpoint("10.0.0.1:9100", 0)};
  const auto found = diff(from, to);
  EXPECT_THAT(found.restart, ElementsAre("listen: [127.0.0.1:6443, [::1]:6443] -> [127.0.0.1:7443]",
                                         "admin.listen: 127.0.0.1:8081 -> 127.0.0.1:9000",
                                         "metrics.listen: [] -> [10.0.0.1:9100]"));
  EXPECT_THAT(found.live, IsEmpty());
}

TEST(ConfigDiff, KeepingTheListenersTakesEverythingElse) {
  const config running;
  config next;
  next.listen = {*net::parse_endpoint("127.0.0.1:7443", 0)};
  next.admin_listen = *net::parse_endpoint("127.0.0.1:9000", 0);
  next.metrics_listen = {*net::parse_endpoint("10.0.0.1:9100", 0)};
  next.health.fall = 5;
  const auto found = diff(running, keep_listeners(running, next));
  EXPECT_THAT(found.restart, IsEmpty());
  EXPECT_THAT(found.live, ElementsAre("health.fall: 3 -> 5"));
}

}  // namespace
}  // namespace kubelane::config
