#include "config/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kubelane::config {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace ip = boost::asio::ip;

net::endpoint at(std::string_view text) {
  return *net::parse_endpoint(text, 0);
}

upstream server(std::string name, std::string_view address) {
  return {std::move(name), *net::parse_host_port(address, 6443), {}, {}};
}

config good() {
  config result;
  result.upstreams = {server("cp1", "10.0.0.11"), server("cp2", "10.0.0.12")};
  return result;
}

std::vector<std::string> shown(const std::vector<problem>& list) {
  std::vector<std::string> result;
  for (const auto& each : list) result.push_back(each.path + ": " + each.message);
  return result;
}

std::vector<std::string> errors(const config& of, const std::vector<ip::address>& host = {}) {
  return shown(validate(of, {}, host).list);
}

std::vector<std::string> warnings(const config& of) {
  return shown(validate(of, {}, {}).warnings);
}

TEST(ConfigValidate, DefaultsWithAnUpstreamAreGoodWithoutWarning) {
  EXPECT_THAT(errors(good()), IsEmpty());
  EXPECT_THAT(warnings(good()), IsEmpty());
}

TEST(ConfigValidate, NoUpstreamIsRefused) {
  EXPECT_THAT(errors(config{}), ElementsAre("upstreams: is missing: name at least one API server"));
}

TEST(ConfigValidate, TotalTimeoutBelowAttemptTimeoutIsRefused) {
  auto it = good();
  it.dial.attempt_timeout = it.dial.total_timeout;
  EXPECT_THAT(errors(it), IsEmpty());
  it.dial.attempt_timeout = seconds(4);
  EXPECT_THAT(errors(it), ElementsAre("dial.total_timeout: 3500ms is below attempt_timeout 4s"));
}

TEST(ConfigValidate, ResetAfterBelowSuspectAfterIsRefused) {
  auto it = good();
  it.failover.suspect_after = seconds(4);
  EXPECT_THAT(errors(it), ElementsAre("failover.reset_after: 3s is below suspect_after 4s"));
}

TEST(ConfigValidate, NoListenerIsRefused) {
  auto it = good();
  it.listen.clear();
  EXPECT_THAT(errors(it), ElementsAre("listen: is empty: give an address and a port to listen on"));
}

TEST(ConfigValidate, OneListenAddressTwiceIsRefused) {
  auto it = good();
  it.listen = {at("127.0.0.1:6443"), at("[::1]:6443"), at("[::ffff:127.0.0.1]:6443")};
  EXPECT_THAT(
      errors(it),
      ElementsAre("listen[2]: \"127.0.0.1:6443\" is taken by listen[0] \"127.0.0.1:6443\""));
}

TEST(ConfigValidate, AdminOnThePortOfAListenerIsRefused) {
  auto it = good();
  it.admin_listen = at("[::1]:6443");
  EXPECT_THAT(errors(it),
              ElementsAre("admin.listen: \"[::1]:6443\" is taken by listen[1] \"[::1]:6443\""));
}

TEST(ConfigValidate, MetricsOnTheAdminPortIsRefused) {
  auto it = good();
  it.metrics_listen = {at("0.0.0.0:8081")};
  EXPECT_THAT(
      errors(it),
      ElementsAre(
          "metrics.listen[0]: \"0.0.0.0:8081\" is taken by admin.listen \"127.0.0.1:8081\""));
}

TEST(ConfigValidate, AWildcardTakesItsFamilyAndNoOther) {
  auto it = good();
  it.listen = {at("0.0.0.0:6443"), at("[::]:6443")};
  EXPECT_THAT(errors(it), IsEmpty());
  it.listen.push_back(at("[::1]:6443"));
  EXPECT_THAT(errors(it),
              ElementsAre("listen[2]: \"[::1]:6443\" is taken by listen[1] \"[::]:6443\""));
}

TEST(ConfigValidate, OneAddressWithTwoPortsIsGood) {
  auto it = good();
  it.metrics_listen = {at("127.0.0.1:9100"), at("10.0.0.1:9100")};
  EXPECT_THAT(errors(it), IsEmpty());
}

TEST(ConfigValidate, MetricsForEverybodyAreAWarningUnlessThatIsWhatIsSaid) {
  auto it = good();
  it.metrics_listen = {at("127.0.0.1:9100"), at("10.0.0.1:9100")};
  EXPECT_THAT(warnings(it),
              ElementsAre(HasSubstr("metrics.listen[1]: \"10.0.0.1:9100\" answers everybody")));
  EXPECT_THAT(validate(it, {{"metrics.allow", {3, 1}}}, {}).warnings, IsEmpty());
}

TEST(ConfigValidate, AllowingMetricsThatNobodyServesIsAWarning) {
  auto it = good();
  it.metrics_allow = {net::subnet(boost::asio::ip::make_address("10.0.0.0"), 8)};
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("does nothing without metrics.listen")));
}

TEST(ConfigValidate, ListeningOnMulticastOrLinkLocalWithoutInterfaceIsRefused) {
  auto it = good();
  it.listen = {at("[::1]:6443"), at("[fe80::1]:6443"), at("224.0.0.1:6443")};
  EXPECT_THAT(errors(it), ElementsAre(HasSubstr("listen[1]: \"[fe80::1]:6443\" is link-local"),
                                      HasSubstr("listen[2]: \"224.0.0.1:6443\" is a multicast")));
}

TEST(ConfigValidate, AdminBeyondLoopbackIsAWarning) {
  auto it = good();
  it.admin_listen = at("10.0.0.5:8081");
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("admin.listen: \"10.0.0.5:8081\" is open to the "
                                                  "network")));
  it.admin_listen = at("0.0.0.0:8081");
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("is open to the network")));
  it.admin_listen = at("[::1]:8081");
  EXPECT_THAT(warnings(it), IsEmpty());
}

TEST(ConfigValidate, ListeningOnIpv4AloneWarnsThatLocalhostLeadsElsewhere) {
  auto it = good();
  for (const auto* address : {"127.0.0.1:6443", "0.0.0.0:6443"}) {
    it.listen = {at(address)};
    EXPECT_THAT(warnings(it),
                ElementsAre("listen: nothing listens on [::1]:6443, where `localhost` leads first: "
                            "kubeconfigs must say https://127.0.0.1:6443"));
  }
  it.listen = {at("0.0.0.0:6443"), at("[::1]:7443")};
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("nothing listens on [::1]:6443")));
}

TEST(ConfigValidate, ListeningOnBothFamiliesOrNotOnLoopbackDoesNotWarn) {
  auto it = good();
  for (const auto& listen : {std::vector{at("127.0.0.1:6443"), at("[::]:6443")},
                             std::vector{at("10.0.0.5:6443")}, std::vector{at("[::1]:6443")}}) {
    it.listen = listen;
    EXPECT_THAT(warnings(it), IsEmpty());
  }
}

TEST(ConfigValidate, AnUpstreamThatIsAListenerIsRefused) {
  auto it = good();
  it.metrics_listen = {at("10.0.0.5:9100")};
  for (const auto* address : {"127.0.0.1:6443", "::1", "127.0.0.1:8081", "10.0.0.5:9100",
                              "::ffff:127.0.0.1", "localhost"}) {
    it.upstreams = {server("cp1", address)};
    EXPECT_THAT(errors(it), Contains(HasSubstr("upstreams[0].address: ")))
        << address << " is kubelane's own listener";
  }
}

TEST(ConfigValidate, AnotherLoopbackAddressOrPortIsNoOwnListener) {
  auto it = good();
  it.upstreams = {server("cp1", "127.0.0.2:6443"), server("cp2", "127.0.0.1:6444")};
  EXPECT_THAT(errors(it), IsEmpty());
}

TEST(ConfigValidate, LoopbackWithThePortOfAWildcardListenerIsRefused) {
  auto it = good();
  it.listen = {at("0.0.0.0:6443")};
  it.upstreams = {server("cp1", "127.0.0.2:6443")};
  EXPECT_THAT(errors(it), ElementsAre("upstreams[0].address: \"127.0.0.2:6443\" is kubelane's own "
                                      "listener: name the API server itself"));
}

TEST(ConfigValidate, AnAddressOfThisHostWithThePortOfAWildcardListenerIsRefused) {
  auto it = good();
  it.listen = {at("0.0.0.0:6443"), at("[::]:6443")};
  it.upstreams = {server("cp1", "10.0.0.5"), server("cp2", "fd00::5"), server("cp3", "10.0.0.6")};
  EXPECT_THAT(errors(it), IsEmpty());
  EXPECT_THAT(errors(it, {ip::make_address("10.0.0.5"), ip::make_address("fd00::5")}),
              ElementsAre(HasSubstr("upstreams[0].address"), HasSubstr("upstreams[1].address")));
}

TEST(ConfigOwnListener, AnIpv6WildcardIsHeldToTakeIpv4Too) {
  EXPECT_TRUE(is_own_listener(at("127.0.0.1:1"), {at("[::]:1")}, {}));
  EXPECT_FALSE(is_own_listener(at("[::1]:1"), {at("0.0.0.0:1")}, {}));
}

TEST(ConfigOwnListener, ThisHostsAddressWithoutAWildcardIsNone) {
  EXPECT_FALSE(
      is_own_listener(at("10.0.0.5:1"), {at("127.0.0.1:1")}, {ip::make_address("10.0.0.5")}));
}

TEST(ConfigValidate, AnUpstreamThatIsNoSingleServerIsRefused) {
  auto it = good();
  for (const auto* address : {"0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"}) {
    it.upstreams = {server("cp1", address)};
    EXPECT_THAT(errors(it), ElementsAre(HasSubstr("is no address of one server"))) << address;
  }
  it.upstreams = {server("cp1", "fe80::1")};
  EXPECT_THAT(errors(it), ElementsAre(HasSubstr("is link-local: name its interface")));
}

TEST(ConfigValidate, OneNameTwiceIsRefused) {
  auto it = good();
  it.upstreams[1].name = "cp1";
  EXPECT_THAT(errors(it),
              ElementsAre("upstreams[1].name: \"cp1\" is the name of upstreams[0] too"));
}

TEST(ConfigValidate, OneNameAndAddressTwiceIsRefused) {
  auto it = good();
  it.upstreams[1] = it.upstreams[0];
  EXPECT_THAT(errors(it),
              ElementsAre("upstreams[1].name: \"cp1\" is the name of upstreams[0] too"));
}

TEST(ConfigValidate, ANameThatIsAnothersAddressIsRefused) {
  auto it = good();
  it.upstreams = {server("10.0.0.11:6443", "10.0.0.11"), server("10.0.0.11:6443", "10.0.0.12")};
  EXPECT_THAT(errors(it), ElementsAre(HasSubstr("upstreams[1].name")));
}

TEST(ConfigValidate, OneAddressTwiceWithoutNamesIsAWarningAlone) {
  auto it = good();
  it.upstreams = {server("10.0.0.11:6443", "10.0.0.11"), server("10.0.0.11:6443", "10.0.0.11")};
  EXPECT_THAT(errors(it), IsEmpty());
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("they are one upstream")));
}

TEST(ConfigValidate, OneDnsNameTwiceIsAWarning) {
  auto it = good();
  it.upstreams = {server("cp1", "cp.example.com"), server("cp2", "cp.example.com:6443")};
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("upstreams[1].address")));
}

TEST(ConfigMerge, KeepsTheFirstOfEachAddressInOrder) {
  auto it = good();
  it.upstreams = {server("a", "10.0.0.1"), server("b", "10.0.0.2"), server("c", "10.0.0.1"),
                  server("d", "10.0.0.1:443")};
  merge_same_addresses(it);
  ASSERT_EQ(it.upstreams.size(), 3u);
  EXPECT_EQ(it.upstreams[0].name, "a");
  EXPECT_EQ(it.upstreams[1].name, "b");
  EXPECT_EQ(it.upstreams[2].name, "d");
}

TEST(ConfigValidate, AZoneThatNoUpstreamIsInIsAWarning) {
  auto it = good();
  it.zone = "a";
  EXPECT_THAT(warnings(it), ElementsAre("zone: no upstream is in zone \"a\""));
  it.upstreams[1].zone = "a";
  EXPECT_THAT(warnings(it), IsEmpty());
}

TEST(ConfigValidate, AProbePathMustBeOne) {
  auto it = good();
  for (const std::string path : {"", "readyz", "/a b", "/a\nb", "/a#b", "/\xc3\xbc"}) {
    it.health.path = path;
    EXPECT_THAT(errors(it), ElementsAre(HasSubstr("health.path: "))) << path;
  }
  it.health.path = "/" + std::string(1024, 'x');
  EXPECT_THAT(errors(it), ElementsAre("health.path: is longer than 1024 bytes"));
  it.health.path = "/readyz?verbose&exclude=etcd";
  EXPECT_THAT(errors(it), IsEmpty());
}

TEST(ConfigValidate, ClientCertificateAndKeyGoTogether) {
  auto it = good();
  it.health.tls.client_cert_file = "/c";
  EXPECT_THAT(errors(it),
              ElementsAre("health.tls.client_cert_file: needs client_key_file beside it"));
  it.health.tls.client_key_file = "/k";
  EXPECT_THAT(errors(it), IsEmpty());
  it.health.tls.client_cert_file = "";
  EXPECT_THAT(errors(it),
              ElementsAre("health.tls.client_key_file: needs client_cert_file beside it"));
}

TEST(ConfigValidate, KubeconfigBesideOtherTlsFilesIsRefused) {
  auto it = good();
  it.health.tls.kubeconfig = "/etc/kubernetes/kubelet.conf";
  EXPECT_THAT(errors(it), IsEmpty());
  it.health.tls.client_cert_file = "/c";
  it.health.tls.client_key_file = "/k";
  const positions written = {{"health.tls.ca_file", {1, 1}},
                             {"health.tls.client_cert_file", {2, 1}},
                             {"health.tls.client_key_file", {3, 1}}};
  EXPECT_THAT(shown(validate(it, written, {}).list),
              ElementsAre(HasSubstr("ca_file: cannot stand beside kubeconfig"),
                          HasSubstr("client_cert_file: cannot stand beside kubeconfig"),
                          HasSubstr("client_key_file: cannot stand beside kubeconfig")));
}

TEST(ConfigValidate, VerifyingWithoutACaOrANameIsRefused) {
  auto it = good();
  it.health.tls.ca_file = "";
  it.health.tls.server_name = "";
  EXPECT_THAT(errors(it),
              ElementsAre("health.tls.ca_file: is empty: verify full needs the cluster's CA",
                          "health.tls.server_name: is empty: verify full needs a name to expect"));
  it.health.tls.verify = verify_mode::ca;
  EXPECT_THAT(errors(it), ElementsAre(HasSubstr("verify ca needs the cluster's CA")));
  it.health.tls.verify = verify_mode::none;
  EXPECT_THAT(errors(it), IsEmpty());
}

TEST(ConfigValidate, VerifyNoneIsAWarning) {
  auto it = good();
  it.health.tls.verify = verify_mode::none;
  EXPECT_THAT(warnings(it), ElementsAre(HasSubstr("health.tls.verify: none takes every server")));
}

TEST(ConfigValidate, AProblemStandsAtTheNearestWrittenSection) {
  const positions written = {{"dial", {4, 1}}, {"dial.attempt_timeout", {5, 3}}};
  auto it = good();
  it.dial.attempt_timeout = seconds(4);
  it.listen.clear();
  const auto found = validate(it, written, {}).list;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at.line, 1);  // `listen` is not in the file at all
  EXPECT_EQ(found[1].at.line, 5);  // total_timeout is left out, attempt_timeout is not
}

TEST(ConfigValidate, ValuesThatWereWrongAlreadyArePassedBy) {
  auto it = good();
  it.listen = {net::endpoint()};
  it.upstreams = {upstream{}, upstream{}};
  EXPECT_THAT(errors(it), IsEmpty());
}

}  // namespace
}  // namespace kubelane::config
