#include "node/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace kubelane::node {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

net::endpoint at(const char* text) {
  return *net::parse_endpoint(text, 6443);
}

boost::asio::ip::address address(const char* text) {
  return boost::asio::ip::make_address(text);
}

/// A node on which all is well.
facts good_node() {
  facts node;
  node.now = moment(std::chrono::days(20'000));
  node.config_path = "/etc/kubelane/config.yaml";
  node.listen = {at("127.0.0.1:6443"), at("[::1]:6443")};
  node.admin = at("127.0.0.1:8081");
  node.upstreams = {"10.0.0.11", "10.0.0.12"};
  node.listeners = {{at("127.0.0.1:6443"), 7, "kubelane"},
                    {at("[::1]:6443"), 7, "kubelane"},
                    {at("127.0.0.1:8081"), 7, "kubelane"}};
  node.has_ipv6_loopback = true;
  node.kubeconfigs = {
      {"/etc/kubernetes/kubelet.conf", client::kubelet, "https://localhost:6443", ""},
      {"/var/lib/kube-proxy.conf", client::kube_proxy, "https://127.0.0.1:6443", ""}};
  node.localhost = {{address("127.0.0.1"), address("::1")}, "/etc/hosts"};
  node.certificates = {{"/etc/kubernetes/ssl/ca.crt", "the CA", node.now - std::chrono::days(1),
                        node.now + std::chrono::days(31)}};
  node.servers = {{"cp1", 1s}};
  return node;
}

/// The one finding of that node.
finding only(const facts& node) {
  const auto found = examine(node);
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? finding() : found.front();
}

void expect(const facts& node, const char* rule, severity how, const char* place,
            const char* words) {
  const auto found = only(node);
  EXPECT_EQ(found.rule, rule);
  EXPECT_EQ(found.how, how) << found.message;
  EXPECT_EQ(found.at, place);
  EXPECT_THAT(found.message, HasSubstr(words));
}

TEST(NodeRules, AGoodNodeHasNoFinding) {
  EXPECT_TRUE(examine(good_node()).empty());
}

TEST(NodeRules, ABadConfigurationIsAnError) {
  auto node = good_node();
  node.config_problem = "3:1: upstreams: must not be empty";
  expect(node, "configuration", severity::error, "/etc/kubelane/config.yaml", "must not be empty");
}

TEST(NodeRules, AProxysManifestIsAnError) {
  auto node = good_node();
  node.manifests = {{"/etc/kubernetes/manifests/nginx-proxy.yml", "nginx"}};
  expect(node, "proxy-manifest", severity::error, "/etc/kubernetes/manifests/nginx-proxy.yml",
         "loadbalancer_apiserver_type: kubelane");
}

TEST(NodeRules, AProxyThatHoldsThePortIsNamed) {
  auto node = good_node();
  node.listeners->front() = {at("127.0.0.1:6443"), 12, "nginx"};
  expect(node, "proxy-process", severity::error, "127.0.0.1:6443", "nginx (process 12)");
}

TEST(NodeRules, AProxyOnEveryAddressHoldsTheHealthPortToo) {
  auto node = good_node();
  node.listeners->back() = {at("0.0.0.0:8081"), 12, "haproxy"};
  expect(node, "proxy-process", severity::error, "127.0.0.1:8081", "/readyz");
}

TEST(NodeRules, AnApiServerOnThePortIsNoProxy) {
  auto node = good_node();
  node.listeners = {{at("[::]:6443"), 3, "kube-apiserver"}, {at("127.0.0.1:8081"), 7, "kubelane"}};
  const auto found = examine(node);
  ASSERT_EQ(found.size(), 2u);
  for (const auto& each : found) EXPECT_EQ(each.rule, "port-held");
}

TEST(NodeRules, AHolderThatOnlyRootMaySeeIsSaidToBeOne) {
  auto node = good_node();
  node.listeners->front() = {at("127.0.0.1:6443"), 0, ""};
  expect(node, "port-held", severity::error, "127.0.0.1:6443", "only root may see");
}

TEST(NodeRules, NobodyOnThePortIsAnError) {
  auto node = good_node();
  node.listeners->erase(node.listeners->begin());
  expect(node, "not-serving", severity::error, "127.0.0.1:6443", "systemctl start kubelane");
}

TEST(NodeRules, NobodyListensOnAnIpv6LoopbackThatIsNotThere) {
  auto node = good_node();
  node.listeners->erase(node.listeners->begin() + 1);
  node.has_ipv6_loopback = false;
  EXPECT_TRUE(examine(node).empty());
}

TEST(NodeRules, WithoutListenersNothingIsSaidAboutThem) {
  auto node = good_node();
  node.listeners.reset();
  EXPECT_TRUE(examine(node).empty());
}

TEST(NodeRules, AKubeletThatDialsOneServerIsAnError) {
  auto node = good_node();
  node.kubeconfigs.front().server = "https://10.0.0.11:6443";
  expect(node, "kubeconfig-elsewhere", severity::error, "/etc/kubernetes/kubelet.conf",
         "Right: https://127.0.0.1:6443");
  expect(node, "kubeconfig-elsewhere", severity::error, "/etc/kubernetes/kubelet.conf",
         "one API server alone");
}

TEST(NodeRules, ACniThatDialsOneServerIsAnErrorAndTheServiceAWarning) {
  auto node = good_node();
  node.kubeconfigs = {
      {"/etc/cni/net.d/calico-kubeconfig", client::cni, "https://10.0.0.12:443", ""}};
  EXPECT_EQ(only(node).how, severity::error);
  node.kubeconfigs.front().server = "https://10.233.0.1:443";
  expect(node, "kubeconfig-elsewhere", severity::warning, "/etc/cni/net.d/calico-kubeconfig",
         "the CNI dials https://10.233.0.1:443");
  node.kubeconfigs.front().server = "https://api.example.org:6443";
  EXPECT_EQ(only(node).how, severity::error);
}

TEST(NodeRules, AnAdministratorsKubeconfigElsewhereIsAWarning) {
  auto node = good_node();
  node.kubeconfigs = {{"/etc/kubernetes/admin.conf", client::other, "https://10.0.0.11:6443", ""}};
  EXPECT_EQ(only(node).how, severity::warning);
}

TEST(NodeRules, AnUnreadableKubeconfigIsAWarning) {
  auto node = good_node();
  node.kubeconfigs.front() = {"/etc/kubernetes/kubelet.conf", client::kubelet, "",
                              "Permission denied"};
  expect(node, "kubeconfig-unreadable", severity::warning, "/etc/kubernetes/kubelet.conf",
         "Permission denied");
}

TEST(NodeRules, AServerThatIsNoAddressIsAnError) {
  auto node = good_node();
  node.kubeconfigs.front().server = "https://:::/";
  EXPECT_EQ(only(node).rule, "kubeconfig-elsewhere");
}

TEST(NodeRules, AnotherPortThanKubelanesIsAnError) {
  auto node = good_node();
  node.kubeconfigs.back().server = "https://127.0.0.1:7443";
  expect(node, "ports-differ", severity::error, "/var/lib/kube-proxy.conf",
         "127.0.0.1:7443, and kubelane listens on 127.0.0.1:6443, [::1]:6443");
  node.kubeconfigs.back().server = "https://localhost";
  expect(node, "ports-differ", severity::error, "/var/lib/kube-proxy.conf", "localhost:443");
}

TEST(NodeRules, LocalhostThatIsFirstAnAddressWithoutListenerIsAnError) {
  auto node = good_node();
  node.listen = {at("127.0.0.1:6443")};
  expect(node, "localhost-family", severity::warning, "/etc/kubernetes/kubelet.conf",
         "Add [::1]:6443");
  std::reverse(node.localhost.addresses.begin(), node.localhost.addresses.end());
  expect(node, "localhost-family", severity::error, "/etc/kubernetes/kubelet.conf",
         "first ::1 by /etc/hosts");
  node.localhost.addresses = {address("127.0.0.1")};
  EXPECT_TRUE(examine(node).empty());
}

TEST(NodeRules, AListenerOnEveryAddressServesLocalhost) {
  auto node = good_node();
  node.listen = {at("0.0.0.0:6443"), at("[::]:6443")};
  node.listeners = {{at("0.0.0.0:6443"), 7, "kubelane"},
                    {at("[::]:6443"), 7, "kubelane"},
                    {at("127.0.0.1:8081"), 7, "kubelane"}};
  EXPECT_TRUE(examine(node).empty());
}

TEST(NodeRules, WithSelinuxEnforcingTheDomainDecides) {
  auto node = good_node();
  node.selinux.how = selinux::mode::enforcing;
  node.selinux.domain = "unconfined_service_t";
  expect(node, "selinux-port", severity::notice, "/sys/fs/selinux/enforce", "may use any port");
  node.selinux.domain = "container_t";
  expect(node, "selinux-port", severity::warning, "/sys/fs/selinux/enforce", "container_t");
  node.selinux.domain.clear();
  expect(node, "selinux-port", severity::warning, "/sys/fs/selinux/enforce", "does not run");
  node.selinux.how = selinux::mode::permissive;
  EXPECT_TRUE(examine(node).empty());
}

TEST(NodeRules, ALabelOnKubelanesPortIsTold) {
  auto node = good_node();
  node.selinux.how = selinux::mode::permissive;
  node.selinux.ports = {{6000, 7000, "http_port_t", "/var/lib/selinux/t/active/ports.local"},
                        {22, 22, "ssh_port_t", "/var/lib/selinux/t/active/ports.local"}};
  const auto found = examine(node);
  ASSERT_EQ(found.size(), 2u);  // once for each address
  EXPECT_THAT(found.front().message, HasSubstr("http_port_t"));
}

TEST(NodeRules, AClockIsJudgedByHowFarItIsOff) {
  auto node = good_node();
  node.servers = {{"cp1", -5s}, {"cp2", 6s}, {"cp3", -61s}};
  const auto found = examine(node);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].how, severity::warning);
  EXPECT_THAT(found[0].message, HasSubstr("6 s ahead of this node's"));
  EXPECT_EQ(found[1].how, severity::error);
  EXPECT_THAT(found[1].message, HasSubstr("61 s behind this node's"));
  EXPECT_EQ(found[1].at, "cp3");
}

TEST(NodeRules, ACertificateIsJudgedByTheTimeItHasLeft) {
  auto node = good_node();
  auto& until = node.certificates.front().until;
  until = node.now + std::chrono::days(30);
  EXPECT_EQ(only(node).how, severity::warning);
  until = node.now + std::chrono::days(7);
  expect(node, "certificate-expiry", severity::error, "/etc/kubernetes/ssl/ca.crt",
         "the CA expires in 7 days");
  until = node.now - 3h;
  expect(node, "certificate-expiry", severity::error, "/etc/kubernetes/ssl/ca.crt",
         "has expired 3 hours ago");
}

TEST(NodeRules, ACertificateOfTheFutureIsAnError) {
  auto node = good_node();
  node.certificates.front().from = node.now + 1h;
  expect(node, "certificate-expiry", severity::error, "/etc/kubernetes/ssl/ca.crt",
         "not valid before in 1 hours");
}

TEST(NodeRules, FindingsAreInTheOrderOfTheRules) {
  auto node = good_node();
  node.servers = {{"cp1", 100s}};
  node.listeners->front() = {at("127.0.0.1:6443"), 12, "nginx"};
  node.manifests = {{"/etc/kubernetes/manifests/nginx-proxy.yml", "nginx"}};
  const auto found = examine(node);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].rule, "proxy-manifest");
  EXPECT_EQ(found[1].rule, "proxy-process");
  EXPECT_EQ(found[2].rule, "clock-off");
}

}  // namespace
}  // namespace kubelane::node
