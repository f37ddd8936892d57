#include "config/diff.hpp"
#include "config/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kubelane::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto one_upstream = "upstreams: [{name: cp1, address: 10.0.0.11}]\n";

std::vector<std::string> lines(const std::vector<problem>& list, severity how = severity::error) {
  std::vector<std::string> result;
  for (const auto& each : list) result.push_back(describe("f", each, how));
  return result;
}

std::vector<std::string> errors(const std::string& yaml) {
  const auto result = load(yaml);
  return result ? std::vector<std::string>{} : lines(result.error().list);
}

/// With one good upstream, on the last line.
std::vector<std::string> errors_beside_upstream(const std::string& yaml) {
  return errors(yaml + "\n" + one_upstream);
}

/// `a.b: value` as a document of nested flow mappings, and one upstream.
std::string document_with(std::string_view path, std::string_view value) {
  const auto dot = path.find('.');
  if (dot == std::string_view::npos)
    return std::string(path) + ": " + std::string(value) + "\n" + one_upstream;
  std::string inner(value);
  auto rest = path;
  while (rest.find('.') != std::string_view::npos) {
    const auto last = rest.rfind('.');
    inner = "{" + std::string(rest.substr(last + 1)) + ": " + inner + "}";
    rest = rest.substr(0, last);
  }
  return std::string(rest) + ": " + inner + "\n" + one_upstream;
}

struct key {
  const char* path;
  const char* default_value;  // as YAML
  const char* default_shown;  // as a difference shows it
  const char* other_value;
  const char* other_shown;
};

void PrintTo(const key& of, std::ostream* out) {
  *out << of.path;
}

class ConfigKey : public testing::TestWithParam<key> {};

TEST_P(ConfigKey, LeftOutHasItsDocumentedDefault) {
  const auto left_out = load(one_upstream);
  const auto written = load(document_with(GetParam().path, GetParam().default_value));
  ASSERT_TRUE(left_out && written);
  EXPECT_TRUE(diff(left_out->settings, written->settings).empty());
}

TEST_P(ConfigKey, IsReadAndItsChangeIsNamed) {
  const auto before = load(one_upstream);
  const auto after = load(document_with(GetParam().path, GetParam().other_value));
  ASSERT_TRUE(before && after);
  const auto found = diff(before->settings, after->settings);
  auto named = found.live;
  named.insert(named.end(), found.restart.begin(), found.restart.end());
  EXPECT_THAT(named, ElementsAre(std::string(GetParam().path) + ": " + GetParam().default_shown +
                                 " -> " + GetParam().other_shown));
}

constexpr auto ca_path = "/etc/kubernetes/ssl/ca.crt";
constexpr auto quoted_ca_path = "\"/etc/kubernetes/ssl/ca.crt\"";

INSTANTIATE_TEST_SUITE_P(
    , ConfigKey,
    testing::Values(
        key{"listen", "[127.0.0.1:6443, '[::1]:6443']", "[127.0.0.1:6443, [::1]:6443]",
            "[127.0.0.1:7443, '[::1]:7443']", "[127.0.0.1:7443, [::1]:7443]"},
        key{"admin.listen", "127.0.0.1:8081", "127.0.0.1:8081", "'[::1]:9000'", "[::1]:9000"},
        key{"metrics.listen", "[]", "[]", "10.0.0.1:9100", "[10.0.0.1:9100]"},
        key{"metrics.allow", "[]", "[]", "[10.1.0.0/16, 'fd00::/8', 10.0.0.7]",
            "[10.1.0.0/16, fd00::/8, 10.0.0.7/32]"},
        key{"zone", "''", "\"\"", "a", "\"a\""},
        key{"balance", "least_connections", "least_connections", "round_robin", "round_robin"},
        key{"health.mode", "readyz", "readyz", "tcp", "tcp"},
        key{"health.path", "/readyz", "\"/readyz\"", "/livez", "\"/livez\""},
        key{"health.interval", "auto", "auto", "2s", "2s"},
        key{"health.timeout", "500ms", "500ms", "1s", "1s"}, key{"health.fall", "3", "3", "5", "5"},
        key{"health.rise", "3", "3", "1", "1"}, key{"health.slow_start", "30s", "30s", "0s", "0s"},
        key{"health.hold_down", "10s", "10s", "1m", "1m"},
        key{"health.tls.verify", "full", "full", "ca", "ca"},
        key{"health.tls.ca_file", ca_path, quoted_ca_path, "/ca", "\"/ca\""},
        key{"health.tls.server_name", "kubernetes.default.svc", "\"kubernetes.default.svc\"",
            "kubernetes", "\"kubernetes\""},
        key{"health.tls.kubeconfig", "''", "\"\"", "/etc/kubernetes/kubelet.conf",
            "\"/etc/kubernetes/kubelet.conf\""},
        key{"dial.attempt_timeout", "1s", "1s", "1500ms", "1500ms"},
        key{"dial.hedge_after", "250ms", "250ms", "100ms", "100ms"},
        key{"dial.first_answer", "500ms", "500ms", "1s", "1s"},
        key{"dial.total_timeout", "3500ms", "3500ms", "10s", "10s"},
        key{"failover.mode", "act", "act", "observe", "observe"},
        key{"failover.suspect_after", "300ms", "300ms", "1s", "1s"},
        key{"failover.reset_after", "3s", "3s", "5s", "5s"},
        key{"drain.etcd", "3s", "3s", "1s", "1s"}, key{"drain.shutdown", "30s", "30s", "1m", "1m"},
        key{"drain.other", "10s", "10s", "20s", "20s"},
        key{"drain.removed", "10s", "10s", "0s", "0s"}, key{"drain.busy", "60s", "1m", "1h", "1h"},
        key{"relay.half_closed_timeout", "5m", "5m", "24h", "24h"},
        key{"cluster.nodes", "100", "100", "5000", "5000"},
        key{"cluster.etcd", "stacked", "stacked", "external", "external"},
        key{"limits.connections", "10000", "10000", "500", "500"},
        key{"log.level", "info", "info", "debug", "debug"},
        key{"log.format", "text", "text", "json", "json"}));

TEST(ConfigDefaults, ClientCertificateAndKeyAreEmptyAndAreReadTogether) {
  const auto before = load(one_upstream);
  const auto after = load(std::string(one_upstream) +
                          "health: {tls: {client_cert_file: /c, client_key_file: /k}}\n");
  ASSERT_TRUE(before && after);
  EXPECT_EQ(before->settings.health.tls.client_cert_file, "");
  EXPECT_EQ(before->settings.health.tls.client_key_file, "");
  EXPECT_EQ(after->settings.health.tls.client_cert_file, "/c");
  EXPECT_EQ(after->settings.health.tls.client_key_file, "/k");
}

TEST(ConfigDefaults, AnUpstreamHasPort6443NoZoneAndItsAddressForAName) {
  const auto result = load("upstreams: [{address: 10.0.0.11}]");
  ASSERT_TRUE(result);
  const auto& only = result->settings.upstreams.at(0);
  EXPECT_EQ(only.address, (net::host_port{"10.0.0.11", 6443}));
  EXPECT_EQ(only.zone, "");
  EXPECT_EQ(only.name, "10.0.0.11:6443");
}

TEST(ConfigDefaults, GiveNoWarning) {
  const auto result = load(one_upstream);
  ASSERT_TRUE(result);
  EXPECT_THAT(result->warnings, IsEmpty());
}

struct limits_of {
  const char* path;
  const char* least;
  const char* most;
  const char* below;
  const char* above;
  const char* shown;
};

void PrintTo(const limits_of& of, std::ostream* out) {
  *out << of.path;
}

class ConfigRange : public testing::TestWithParam<limits_of> {};

TEST_P(ConfigRange, RefusesWhatIsBeyondItAndSaysTheRange) {
  for (const auto* value : {GetParam().below, GetParam().above}) {
    const auto found = errors(document_with(GetParam().path, value));
    const auto wanted =
        std::string(GetParam().path) + ": \"" + value + "\" is not in " + GetParam().shown;
    EXPECT_THAT(found, ElementsAre(HasSubstr(wanted)));
  }
}

TEST_P(ConfigRange, TakesBothEnds) {
  for (const auto* value : {GetParam().least, GetParam().most})
    EXPECT_THAT(errors(document_with(GetParam().path, value)),
                testing::Not(testing::Contains(HasSubstr("is not in"))));
}

INSTANTIATE_TEST_SUITE_P(
    , ConfigRange,
    testing::Values(limits_of{"health.interval", "100ms", "1h", "99ms", "3601s", "100ms..1h"},
                    limits_of{"health.timeout", "10ms", "10s", "9ms", "11s", "10ms..10s"},
                    limits_of{"health.fall", "1", "10", "0", "11", "1..10"},
                    limits_of{"health.rise", "1", "10", "-1", "99999999999999999999", "1..10"},
                    limits_of{"dial.attempt_timeout", "50ms", "1m", "49ms", "61s", "50ms..1m"},
                    limits_of{"dial.hedge_after", "10ms", "1m", "9ms", "61s", "10ms..1m"},
                    limits_of{"dial.first_answer", "10ms", "60s", "0s", "2m", "10ms..1m"},
                    limits_of{"dial.total_timeout", "100ms", "120s", "99ms", "1h", "100ms..2m"},
                    limits_of{"failover.suspect_after", "50ms", "60s", "0ms", "61s", "50ms..1m"},
                    limits_of{"failover.reset_after", "500ms", "120s", "499ms", "121s",
                              "500ms..2m"},
                    limits_of{"relay.half_closed_timeout", "1s", "24h", "999ms", "25h", "1s..24h"},
                    limits_of{"cluster.nodes", "1", "100000", "0", "100001", "1..100000"},
                    limits_of{"limits.connections", "1", "1000000", "0", "1000001", "1..1000000"}));

class ConfigRangeFromZero : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ConfigRangeFromZero, TakesNothingAndTheMostButNotMore) {
  const auto [path, most] = GetParam();
  EXPECT_THAT(errors(document_with(path, "0s")), IsEmpty());
  EXPECT_THAT(errors(document_with(path, most)), IsEmpty());
  EXPECT_THAT(errors(document_with(path, "99999999999999999999h")),
              ElementsAre(HasSubstr(std::string("is not in 0s..") + most)));
}

INSTANTIATE_TEST_SUITE_P(
    , ConfigRangeFromZero,
    testing::Values(std::pair("health.slow_start", "10m"), std::pair("health.hold_down", "10m"),
                    std::pair("drain.etcd", "1h"), std::pair("drain.shutdown", "1h"),
                    std::pair("drain.other", "1h"), std::pair("drain.removed", "1h"),
                    std::pair("drain.busy", "1h")));

TEST(ConfigLoad, UnknownKeyIsNamedWithItsLineAndTheNearestKey) {
  EXPECT_THAT(errors_beside_upstream("health:\n  intervall: 2s"),
              ElementsAre("f:2:3: health.intervall: unknown key; did you mean `interval`?"));
}

TEST(ConfigLoad, UnknownKeyLikeNoneGetsTheListOfKeys) {
  EXPECT_THAT(errors_beside_upstream("limits: {memory: 3}"),
              ElementsAre("f:1:10: limits.memory: unknown key; known here: connections"));
}

TEST(ConfigLoad, UnknownKeyWithDashesOrCapitalsIsRecognised) {
  EXPECT_THAT(errors_beside_upstream("dial: {Hedge-After: 1s}"),
              ElementsAre(HasSubstr("did you mean `hedge_after`?")));
}

TEST(ConfigLoad, UnknownKeyIsFoundInEverySection) {
  for (const auto* path : {"x", "admin.x", "metrics.x", "health.x", "health.tls.x", "dial.x",
                           "failover.x", "drain.x", "relay.x", "cluster.x", "limits.x", "log.x"})
    EXPECT_THAT(errors(document_with(path, "1")),
                ElementsAre(HasSubstr(std::string(path) + ": unknown key")));
}

TEST(ConfigLoad, UnknownKeyOfAnUpstreamIsFound) {
  EXPECT_THAT(errors("upstreams:\n  - {address: 10.0.0.1, wieght: 3}"),
              ElementsAre(HasSubstr("f:2:25: upstreams[0].wieght: unknown key")));
}

TEST(ConfigLoad, EveryProblemIsReportedInTheOrderOfTheFile) {
  EXPECT_THAT(errors("version: 2\n"
                     "upstreams:\n"
                     "  - {name: cp1, address: 10.0.0.12:70000}\n"
                     "  - {name: cp1, adress: 10.0.0.13}\n"
                     "health: {timeout: 20s, fall: x}\n"
                     "rebalance: {enabled: true}\n"),
              ElementsAre("f:1:10: version: \"2\" is not a version this kubelane reads: write 1",
                          "f:3:26: upstreams[0].address: \"10.0.0.12:70000\": port is not in "
                          "1..65535",
                          "f:4:5: upstreams[1].address: is missing",
                          "f:4:17: upstreams[1].adress: unknown key; did you mean `address`?",
                          "f:5:19: health.timeout: \"20s\" is not in 10ms..10s",
                          "f:5:30: health.fall: \"x\" is not a whole number",
                          "f:6:1: rebalance: is not supported yet: leave this section out"));
}

TEST(ConfigLoad, DiscoveryIsRefusedAsNotSupportedYet) {
  EXPECT_THAT(errors_beside_upstream("version: 1\ndiscovery:\n  kubernetes: {enabled: false}"),
              ElementsAre("f:2:1: discovery: is not supported yet: leave this section out"));
}

TEST(ConfigLoad, VersionOtherThanOneIsRefused) {
  for (const auto* version : {"0", "2", "1.0", "'1'", "latest"})
    EXPECT_THAT(errors(document_with("version", version)),
                ElementsAre(HasSubstr("f:1:10: version")));
  EXPECT_THAT(errors(document_with("version", "1")), IsEmpty());
}

TEST(ConfigLoad, UpstreamsMissingEmptyOrNoListAreRefused) {
  EXPECT_THAT(errors("version: 1"),
              ElementsAre("f:1:1: upstreams: is missing: name at least one API server"));
  EXPECT_THAT(errors("upstreams: []"),
              ElementsAre("f:1:12: upstreams: is empty: name at least one API server"));
  EXPECT_THAT(errors("upstreams:"), ElementsAre(HasSubstr("f:1:1: upstreams: is empty")));
  EXPECT_THAT(errors("upstreams: 10.0.0.1"), ElementsAre("f:1:12: upstreams: is text, not a list"));
}

TEST(ConfigLoad, AnUpstreamMustBeAMapping) {
  EXPECT_THAT(errors("upstreams: [10.0.0.11]"),
              ElementsAre("f:1:13: upstreams[0]: is text, not a mapping: write {address: "
                          "10.0.0.11}"));
}

TEST(ConfigLoad, MoreThanAThousandUpstreamsAreRefused) {
  std::string yaml = "upstreams:\n";
  for (int i = 0; i < 1001; ++i) yaml += "  - {address: cp" + std::to_string(i) + ".example.com}\n";
  EXPECT_THAT(errors(yaml), ElementsAre(HasSubstr("upstreams: has 1001 items: more than 1000")));
}

TEST(ConfigLoad, WrongTypesAreNamedWithTheRightOne) {
  EXPECT_THAT(errors_beside_upstream("health: 3"),
              ElementsAre("f:1:9: health: is text, not a mapping of keys"));
  EXPECT_THAT(errors_beside_upstream("health: {fall: [3]}"),
              ElementsAre("f:1:16: health.fall: is a list, not a whole number"));
  EXPECT_THAT(errors_beside_upstream("health: {timeout: {s: 3}}"),
              ElementsAre("f:1:19: health.timeout: is a mapping, not a duration such as 250ms"));
  EXPECT_THAT(errors_beside_upstream("zone: [a]"),
              ElementsAre("f:1:7: zone: is a list, not a name"));
  EXPECT_THAT(
      errors_beside_upstream("health: {fall: '3'}"),
      ElementsAre("f:1:16: health.fall: \"3\" is text, not a number: leave the quotes out"));
  EXPECT_THAT(errors_beside_upstream("listen: {a: b}"),
              ElementsAre("f:1:9: listen: is a mapping, not a list"));
  EXPECT_THAT(errors_beside_upstream("admin: {listen: [127.0.0.1:1]}"),
              ElementsAre("f:1:17: admin.listen: is a list, not an address with a port"));
  EXPECT_THAT(errors_beside_upstream("balance: [random]"),
              ElementsAre("f:1:10: balance: is a list, not round_robin, random or "
                          "least_connections"));
}

TEST(ConfigLoad, AnEmptyValueIsRefused) {
  EXPECT_THAT(errors_beside_upstream("health:\n  timeout:\nzone: ~"),
              ElementsAre("f:2:3: health.timeout: is empty: give a value, or leave the key out",
                          "f:3:1: zone: is empty: give a value, or leave the key out"));
}

TEST(ConfigLoad, AWordThatIsNoneOfTheChoicesGetsTheList) {
  EXPECT_THAT(errors_beside_upstream("balance: leastconn"),
              ElementsAre("f:1:10: balance: \"leastconn\" is not round_robin, random or "
                          "least_connections"));
}

TEST(ConfigLoad, EveryChoiceIsTaken) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> all = {
      {"balance", {"round_robin", "random", "least_connections"}},
      {"health.mode", {"readyz", "tcp"}},
      {"health.tls.verify", {"full", "ca", "none"}},
      {"failover.mode", {"act", "observe"}},
      {"cluster.etcd", {"stacked", "external"}},
      {"log.level", {"trace", "debug", "info", "warn", "error"}},
      {"log.format", {"text", "json"}}};
  for (const auto& [path, words] : all)
    for (const auto* word : words) EXPECT_THAT(errors(document_with(path, word)), IsEmpty());
}

TEST(ConfigLoad, ABareNumberIsNoDurationAndTheRightFormIsNamed) {
  EXPECT_THAT(errors_beside_upstream("health: {timeout: 2}"),
              ElementsAre("f:1:19: health.timeout: \"2\" has no unit: write 2s or 2ms"));
}

TEST(ConfigLoad, OtherFormsOfDurationsAreRefused) {
  for (const auto* form : {"1.5s", "1h30m", "-1s", "+1s", "'1 s'", "1sec", "s", "1S", "1d", "''"})
    EXPECT_THAT(
        errors(document_with("health.slow_start", form)),
        ElementsAre(HasSubstr("is not a duration: write a whole number and ms, s, m or h")));
}

TEST(ConfigLoad, DurationsTakeFourUnits) {
  const auto result = load(std::string(one_upstream) +
                           "drain: {etcd: 250ms, shutdown: 2s, other: 10m, removed: 1h}");
  ASSERT_TRUE(result);
  const auto& drain = result->settings.drain;
  EXPECT_EQ(drain.etcd, std::chrono::milliseconds(250));
  EXPECT_EQ(drain.shutdown, std::chrono::seconds(2));
  EXPECT_EQ(drain.other, std::chrono::minutes(10));
  EXPECT_EQ(drain.removed, std::chrono::hours(1));
}

TEST(ConfigLoad, ListenTakesOneAddressOrAList) {
  const auto one = load(std::string("listen: '[::1]:6443'\n") + one_upstream);
  const auto two = load(std::string("listen: ['[::1]:6443', 127.0.0.1:6443]\n") + one_upstream);
  ASSERT_TRUE(one && two);
  EXPECT_THAT(one->settings.listen, ElementsAre(*net::parse_endpoint("[::1]:6443", 0)));
  EXPECT_EQ(two->settings.listen.size(), 2u);
}

TEST(ConfigLoad, AListenAddressNeedsAnIpAddressAndAPort) {
  const auto error_of = [](const std::string& text) {
    const auto found = errors_beside_upstream("listen: ['" + text + "']");
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " errors";
  };
  EXPECT_EQ(error_of("127.0.0.1:70000"),
            "f:1:10: listen[0]: \"127.0.0.1:70000\": port is not in 1..65535");
  EXPECT_THAT(error_of("[::1]:0"), HasSubstr("port is not in 1..65535"));
  EXPECT_THAT(error_of("127.0.0.1"), HasSubstr("has no port: write an IP address and a port"));
  EXPECT_THAT(error_of("::1"), HasSubstr("has no port"));
  EXPECT_THAT(error_of("localhost:6443"), HasSubstr("is not an IP address"));
  EXPECT_THAT(error_of(":6443"), HasSubstr("is not an address"));
  EXPECT_THAT(error_of(""), HasSubstr("is empty: write"));
}

TEST(ConfigLoad, ARangeOfAddressesThatIsNoneIsRefusedWithTheRightForm) {
  const std::pair<const char*, const char*> wrong[] = {
      {"10.0.0.0/33", "has no prefix length in 0..32: write a range of addresses, as 10.0.0.0/8"},
      {"10.0.0.0/", "has no prefix length in 0..32"},
      {"10.0.0.0/-1", "has no prefix length in 0..32"},
      {"fd00::/129", "has no prefix length in 0..128"},
      {"10.1.2.3/8", "has bits beyond its prefix: write 10.0.0.0/8"},
      {"fd00::1/64", "has bits beyond its prefix: write fd00::/64"},
      {"node1", "is not a range of addresses: write a range"},
      {"10.0.0.1:9180", "is not a range of addresses"},
      {"", "is empty: write a range"}};
  for (const auto& [text, why] : wrong)
    EXPECT_THAT(
        errors_beside_upstream("metrics:\n  allow: [10.0.0.0/8, '" + std::string(text) + "']"),
        ElementsAre(HasSubstr(":23: metrics.allow[1]: \"" + std::string(text) + "\": " + why)));
  EXPECT_THAT(errors_beside_upstream("metrics: {allow: [{}]}"),
              ElementsAre(HasSubstr("metrics.allow[0]: is a mapping, not a range of addresses")));
}

TEST(ConfigLoad, OneRangeOfAddressesNeedsNoList) {
  const auto found = load(std::string(one_upstream) + "metrics: {allow: 10.0.0.0/8}\n");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->settings.metrics_allow,
              ElementsAre(net::subnet(boost::asio::ip::make_address("10.0.0.0"), 8)));
}

TEST(ConfigLoad, MoreThan64ListenersAreRefused) {
  std::string yaml = "metrics: {listen: [";
  for (int i = 1; i <= 65; ++i) yaml += "127.0.0.1:" + std::to_string(i) + ",";
  EXPECT_THAT(errors_beside_upstream(yaml + "]}"),
              ElementsAre(HasSubstr("metrics.listen: has 65 items: more than 64")));
}

net::host_port address_of(const std::string& text) {
  const auto result = load("upstreams: [{address: '" + text + "'}]");
  return result ? result->settings.upstreams.at(0).address : net::host_port{};
}

TEST(ConfigLoad, UpstreamAddressesAreTakenInEveryForm) {
  EXPECT_EQ(address_of("10.0.0.11"), (net::host_port{"10.0.0.11", 6443}));
  EXPECT_EQ(address_of("10.0.0.11:443"), (net::host_port{"10.0.0.11", 443}));
  EXPECT_EQ(address_of("fd00::13"), (net::host_port{"fd00::13", 6443}));
  EXPECT_EQ(address_of("[fd00::13]"), (net::host_port{"fd00::13", 6443}));
  EXPECT_EQ(address_of("[fd00::13]:443"), (net::host_port{"fd00::13", 443}));
  EXPECT_EQ(address_of("cp1.example.com"), (net::host_port{"cp1.example.com", 6443}));
  EXPECT_EQ(address_of("cp_1:443"), (net::host_port{"cp_1", 443}));
}

TEST(ConfigLoad, UpstreamAddressesAreCanonical) {
  EXPECT_EQ(address_of("::ffff:10.0.0.11"), (net::host_port{"10.0.0.11", 6443}));
  EXPECT_EQ(address_of("[FD00:0::0013]:443"), (net::host_port{"fd00::13", 443}));
  EXPECT_EQ(address_of("CP1.Example.com."), (net::host_port{"cp1.example.com", 6443}));
}

TEST(ConfigLoad, WrongUpstreamAddressesAreExplained) {
  const auto error_of = [](const std::string& text) {
    const auto found = errors("upstreams: [{address: '" + text + "'}]");
    return found.size() == 1 ? found[0] : std::to_string(found.size()) + " errors";
  };
  const auto start = [](const std::string& text) {
    return "f:1:23: upstreams[0].address: \"" + text + "\": ";
  };
  EXPECT_EQ(error_of("10.0.0.12:70000"), start("10.0.0.12:70000") + "port is not in 1..65535");
  EXPECT_EQ(error_of("10.0.0.12:0"), start("10.0.0.12:0") + "port is not in 1..65535");
  EXPECT_EQ(error_of("cp1:https"), start("cp1:https") + "port is not in 1..65535");
  EXPECT_EQ(error_of("[fd00::1]:"), start("[fd00::1]:") + "port is not in 1..65535");
  EXPECT_EQ(error_of("10.0.0.300"), start("10.0.0.300") + "is not an IPv4 address");
  EXPECT_EQ(error_of("10.0.0"), start("10.0.0") + "is not an IPv4 address");
  EXPECT_EQ(error_of("cp1.42"), start("cp1.42") + "is neither an IP address nor a DNS name");
  EXPECT_EQ(error_of("0x7f000001"),
            start("0x7f000001") + "is neither an IP address nor a DNS name");
  EXPECT_EQ(error_of("-cp1"), start("-cp1") + "is neither an IP address nor a DNS name");
  EXPECT_EQ(error_of("c p"), start("c p") + "is neither an IP address nor a DNS name");
  EXPECT_EQ(
      error_of("https://10.0.0.1:6443"),
      start("https://10.0.0.1:6443") + "is a URL: write the address alone, as 10.0.0.11:6443");
  EXPECT_THAT(error_of("[10.0.0.1"), HasSubstr("is not an address: write 10.0.0.11:6443, "));
  EXPECT_THAT(error_of("fd00::zz"), HasSubstr("is not an address: write 10.0.0.11:6443, "));
  EXPECT_THAT(error_of(""), HasSubstr("is empty: write 10.0.0.11:6443, "));
}

TEST(ConfigLoad, BareIpv6WithWhatLooksLikeAPortIsAWarning) {
  const auto result = load("upstreams: [{address: 'fd00::13:6443'}]");
  ASSERT_TRUE(result);
  EXPECT_THAT(lines(result->warnings, severity::warning),
              ElementsAre("f:1:23: upstreams[0].address: warning: \"fd00::13:6443\" has no port in "
                          "this form; with one, write \"[fd00::13]:6443\""));
}

TEST(ConfigLoad, NamesAndZonesThatWouldBreakALogLineAreRefused) {
  for (const std::string name : {"a b", "a=b", "a/b", "a\\\"b", "", "\\n"})
    EXPECT_THAT(errors("upstreams: [{name: \"" + name + "\", address: 10.0.0.1}]"),
                ElementsAre(HasSubstr("is not 1 to 63 letters, digits or any of")));
  EXPECT_THAT(errors_beside_upstream("zone: 'a b'"),
              ElementsAre(HasSubstr("f:1:7: zone: \"a b\" is not")));
}

TEST(ConfigLoad, AServerNameMustBeANameOrAnAddress) {
  for (const std::string name : {"a b", "https://kubernetes", "'*.example.com'", "10.0.0.300"})
    EXPECT_THAT(errors(document_with("health.tls.server_name", name)),
                ElementsAre(HasSubstr("is neither a DNS name nor an IP address")));
  for (const std::string name : {"kubernetes", "10.0.0.11", "'fd00::1'"})
    EXPECT_THAT(errors(document_with("health.tls.server_name", name)), IsEmpty());
}

TEST(ConfigLoad, AnUpstreamKnowsItsPlaceInTheFile) {
  const auto result = load("upstreams:\n  - address: 10.0.0.1\n  - address: 10.0.0.2\n");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->settings.upstreams.at(1).at.line, 3);
  EXPECT_EQ(result->settings.upstreams.at(1).at.column, 5);
}

TEST(ConfigLoad, OneAddressTwiceIsOneUpstreamWithAWarning) {
  const auto result = load(
      "upstreams:\n"
      "  - {name: cp1, address: 10.0.0.11}\n"
      "  - {name: cp2, address: '[::ffff:10.0.0.11]:6443'}\n");
  ASSERT_TRUE(result);
  EXPECT_THAT(lines(result->warnings, severity::warning),
              ElementsAre("f:3:26: upstreams[1].address: warning: \"10.0.0.11:6443\" is the "
                          "address of upstreams[0] too: they are one upstream"));
  ASSERT_EQ(result->settings.upstreams.size(), 1u);
  EXPECT_EQ(result->settings.upstreams[0].name, "cp1");
}

TEST(ConfigLoad, WarningsComeBesideErrorsToo) {
  const auto result = load("upstreams: [{address: 10.0.0.1}, {address: 10.0.0.1}]\nx: 1");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().list.size(), 1u);
  EXPECT_EQ(result.error().warnings.size(), 1u);
}

TEST(ConfigLoad, ARuleBrokenOnlyByAValueThatWasRefusedIsNotReportedToo) {
  EXPECT_THAT(errors("listen: 127.0.0.1:x\nupstreams: [{address: 127.0.0.1:6443}]"),
              ElementsAre(HasSubstr("listen: \"127.0.0.1:x\"")));
}

TEST(ConfigLoad, RulesAcrossKeysHaveTheirPlace) {
  EXPECT_THAT(errors_beside_upstream("dial:\n  attempt_timeout: 10s"),
              ElementsAre("f:2:20: dial.total_timeout: 3500ms is below attempt_timeout 10s"));
}

TEST(ConfigLoad, HostAddressesReachTheOwnListenerRule) {
  const std::string yaml = "listen: 0.0.0.0:6443\nupstreams: [{address: 10.0.0.1}]";
  EXPECT_TRUE(load(yaml));
  EXPECT_FALSE(load(yaml, {boost::asio::ip::make_address("10.0.0.1")}));
}

}  // namespace
}  // namespace kubelane::config
