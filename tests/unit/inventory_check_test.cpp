#include "config/load.hpp"
#include "inventory/against.hpp"
#include "inventory/checks.hpp"
#include "inventory/report.hpp"
#include "inventory_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace kubelane::inventory {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using names = std::vector<std::string>;

constexpr const char* three = R"(
[kube_control_plane]
cp1 ip=10.20.0.11
cp2 ip=10.20.0.12
cp3 ip=10.20.0.13
[etcd:children]
kube_control_plane
[kube_node]
w1 ip=10.20.0.21
w2 ip=10.20.0.22
)";

struct checked {
  reading from;
  verdict result;

  names rules() const {
    names list;
    for (const auto& one : result.findings) list.push_back(one.rule);
    return list;
  }
  std::string messages(std::string_view rule) const {
    std::string text;
    for (const auto& one : result.findings)
      if (one.rule == rule) text += one.message + "\n";
    return text;
  }
  names addresses() const {
    names list;
    for (const auto& one : result.seen.control_planes) list.push_back(one.address.text);
    return list;
  }
  bool refused() const { return is_refused(result, {}); }
};

checked check_text(std::string_view text, const check_options& how = {},
                   std::string_view name = "hosts.ini") {
  checked made{test::read_inventory(name, text), {}};
  made.result = check(made.from, how);
  return made;
}

checked with_vars(const std::string& vars) {
  return check_text(std::string(three) + "[all:vars]\n" + vars);
}

std::string etcd_of(int members) {
  std::string text = "[kube_control_plane]\ncp1 ip=10.0.0.1\n[etcd]\n";
  for (int i = 1; i <= members; ++i)
    text += "cp" + std::to_string(i) + " ip=10.0.0." + std::to_string(i) + "\n";
  return text;
}

TEST(InventoryCheck, ThreeControlPlanesAndTwoWorkersAreGood) {
  const auto seen = check_text(three);
  EXPECT_THAT(seen.rules(), IsEmpty());
  EXPECT_THAT(seen.addresses(), ElementsAre("10.20.0.11", "10.20.0.12", "10.20.0.13"));
  EXPECT_EQ(seen.result.etcd.majority, 2);
  EXPECT_EQ(seen.result.etcd.tolerated, 1);
  EXPECT_TRUE(seen.result.seen.is_stacked);
}

TEST(InventoryCheck, FourEtcdMembersTolerateNoMoreThanThree) {
  const auto seen = check_text(etcd_of(4));
  EXPECT_THAT(seen.rules(), Contains("even-etcd"));
  EXPECT_THAT(seen.messages("even-etcd"),
              HasSubstr("a majority is 3, so they tolerate 1 failure, no more than 3 do"));
  EXPECT_TRUE(seen.refused());
  EXPECT_FALSE(is_refused(seen.result, {"even-etcd"}));
}

TEST(InventoryCheck, TwoEtcdMembersTolerateNoMoreThanOne) {
  EXPECT_THAT(check_text(etcd_of(2)).messages("even-etcd"),
              HasSubstr("a majority is 2, so they tolerate 0 failures, no more than 1 does"));
}

TEST(InventoryCheck, OddEtcdIsClean) {
  for (const int members : {1, 3, 5}) EXPECT_THAT(check_text(etcd_of(members)).rules(), IsEmpty());
  EXPECT_EQ(check_text(etcd_of(5)).result.etcd.tolerated, 2);
}

TEST(InventoryCheck, EtcdOnItsOwnHostsIsLegal) {
  const auto seen = check_text(
      "[kube_control_plane]\ncp1 ip=10.0.0.1\ncp2 ip=10.0.0.2\n[etcd]\ncp1\ncp2\ne3 ip=10.0.0.3\n"
      "[kube_node]\nw1 ip=10.0.0.4\n");
  EXPECT_THAT(seen.rules(), IsEmpty());
  EXPECT_FALSE(seen.result.seen.is_stacked);
  EXPECT_THAT(seen.addresses(), ElementsAre("10.0.0.1", "10.0.0.2"));
}

TEST(InventoryCheck, NoEtcdGroupStopsKubesprayUnlessKubeadmKeepsEtcd) {
  EXPECT_THAT(check_text("[kube_control_plane]\ncp1 ip=10.0.0.1\n").rules(),
              ElementsAre("no-etcd"));
  const auto seen = check_text(
      "[kube_control_plane]\ncp1 ip=10.0.0.1\n[all:vars]\netcd_deployment_type=kubeadm\n");
  EXPECT_THAT(seen.rules(), IsEmpty());
  EXPECT_EQ(seen.result.seen.etcd.size(), 1u);
}

TEST(InventoryCheck, AnEmptyControlPlaneIsAnError) {
  EXPECT_THAT(check_text("[kube_control_plane]\n[etcd]\ne1 ip=10.0.0.1\n").rules(),
              ElementsAre("no-control-plane"));
}

TEST(InventoryCheck, AnSshAddressIsNoClusterAddress) {
  const auto seen =
      check_text("[kube_control_plane]\ncp1 ansible_host=203.0.113.11\n[etcd]\ncp1\n");
  EXPECT_THAT(seen.rules(), ElementsAre("address-from-ansible-host-only"));
  EXPECT_THAT(seen.messages("address-from-ansible-host-only"),
              HasSubstr("cp1 has no ip or access_ip: its address depends on facts"));
  EXPECT_THAT(seen.addresses(), ElementsAre(""));
  EXPECT_EQ(seen.result.seen.control_planes[0].address.from, "facts");
}

TEST(InventoryCheck, AHostWithoutAnyAddressIsNamed) {
  EXPECT_THAT(check_text("[kube_control_plane]\ncp1\n[etcd]\ncp1\n").rules(),
              ElementsAre("address-unknown"));
}

TEST(InventoryCheck, TwoHostsWithOneAddressAreNamed) {
  const auto seen = check_text(
      "all:\n  hosts:\n    cp1: {ip: 10.20.0.11, access_ip: 10.20.0.11}\n"
      "    cp2: {ip: 10.20.0.12, access_ip: 10.20.0.11}\n    cp3: {ip: 10.20.0.13, access_ip: }\n"
      "  children:\n    kube_control_plane:\n      hosts: {cp1: , cp2: , cp3: }\n"
      "    etcd:\n      children: {kube_control_plane: }\n",
      {}, "hosts.yml");
  EXPECT_THAT(seen.messages("duplicate-address"), HasSubstr("cp1 and cp2 share 10.20.0.11"));
  EXPECT_THAT(seen.messages("bad-address"), HasSubstr("access_ip of cp3 is set but empty"));
  EXPECT_TRUE(seen.refused());
}

TEST(InventoryCheck, OneHostInTwoGroupsIsNoDuplicate) {
  EXPECT_THAT(check_text(std::string(three) + "cp1\n").rules(), IsEmpty());
}

TEST(InventoryCheck, AnMappedAddressIsTheSameAsItsIpv4Address) {
  const auto seen =
      check_text("[kube_control_plane]\na ip=10.0.0.1\nb ip6='\"::ffff:10.0.0.1\"'\n[etcd]\na\n");
  EXPECT_THAT(seen.messages("duplicate-address"), HasSubstr("a and b share 10.0.0.1"));
}

TEST(InventoryCheck, WhatIsNoUsableAddressIsSaid) {
  for (const char* text :
       {"300.1.1.1", "cp1.example", "127.0.0.1", "0.0.0.0", "224.0.0.1", "fd00::1", "10"})
    EXPECT_THAT(
        check_text("[kube_control_plane]\na ip=" + std::string(text) + "\n[etcd]\na\n").rules(),
        Contains("bad-address"))
        << text;
}

TEST(InventoryCheck, Ipv6AddressesAreSpeltInTheirShortestForm) {
  const auto seen = check_text(
      "all:\n  vars: {ipv4_stack: false, ipv6_stack: true}\n  children:\n    kube_control_plane:\n"
      "      hosts:\n        cp1: {ip6: 'fd00:20::11', access_ip6: 'fd00:30::11'}\n"
      "        cp2: {ip6: 'fd00:20:0:0:0:0:0:12'}\n        cp3: {ip6: '[fd00:20::14]'}\n"
      "    etcd:\n      children: {kube_control_plane: }\n",
      {}, "hosts.yml");
  EXPECT_THAT(seen.addresses(), ElementsAre("fd00:30::11", "fd00:20::12", "fd00:20::14"));
  EXPECT_THAT(seen.rules(), IsEmpty());
  EXPECT_EQ(join_port("fd00:20::12", 6443), "[fd00:20::12]:6443");
}

TEST(InventoryCheck, ALinkLocalAddressIsRefused) {
  EXPECT_THAT(check_text("all:\n  children:\n    kube_control_plane:\n      hosts: {a: {ip6: "
                         "'fe80::1%eth0', ip: 10.0.0.1}}\n    etcd: {hosts: {a: }}\n",
                         {}, "h.yml")
                  .messages("bad-address"),
              HasSubstr("link-local"));
}

TEST(InventoryCheck, TemplatesAreNamedNotGuessed) {
  const auto seen = check_text("[kube_control_plane]\ncp1 ip={{address_of_cp1}}\n[etcd]\ncp1\n");
  EXPECT_THAT(seen.rules(), ElementsAre("needs-template"));
  EXPECT_THAT(seen.messages("needs-template"), HasSubstr("ip is a template"));
  EXPECT_THAT(seen.addresses(), ElementsAre(""));
}

TEST(InventoryCheck, WorkersOnOneOfThreeControlPlanesHaveNoAccess) {
  const auto seen = with_vars("loadbalancer_apiserver_localhost=False\n");
  EXPECT_THAT(seen.rules(), ElementsAre("worker-without-access"));
  EXPECT_TRUE(seen.refused());
  EXPECT_EQ(seen.result.seen.access.is, api_access::kind::first_control_plane);
  EXPECT_EQ(seen.result.seen.access.kubelet, "10.20.0.11:6443");
}

TEST(InventoryCheck, AnExternalLoadBalancerBypassesTheProxy) {
  const auto seen = with_vars("loadbalancer_apiserver={'address': '10.0.0.10', 'port': 8383}\n");
  EXPECT_THAT(seen.rules(), ElementsAre("proxy-bypassed"));
  EXPECT_EQ(seen.result.seen.access.kubelet, "10.0.0.10:8383");
}

TEST(InventoryCheck, TheTextFalseIsTrueToTemplates) {
  EXPECT_THAT(
      with_vars("loadbalancer_apiserver_localhost=false\n").messages("worker-without-access"),
      HasSubstr("write False in INI"));
}

TEST(InventoryCheck, AProxyThatKubesprayPutsBackIsNamed) {
  EXPECT_THAT(with_vars("loadbalancer_apiserver_type=nginx\n").rules(), ElementsAre("proxy-type"));
  EXPECT_THAT(with_vars("loadbalancer_apiserver_type=kubelane\n").rules(), IsEmpty());
}

TEST(InventoryCheck, TwoPortsMeanTwoListeners) {
  const auto seen = with_vars("loadbalancer_apiserver_port=7443\n");
  EXPECT_THAT(seen.rules(), ElementsAre("ports-differ"));
  EXPECT_EQ(seen.result.seen.access.kubelet, "localhost:7443");
  EXPECT_EQ(seen.result.seen.access.kube_proxy, "127.0.0.1:6443");
}

TEST(InventoryCheck, AProxyOnAControlPlaneHoldsTheApiServersPort) {
  const auto seen = check_text(three, {{}, "cp2"});
  EXPECT_THAT(seen.rules(), ElementsAre("port-conflict"));
  EXPECT_THAT(seen.messages("port-conflict"), HasSubstr("cp2 is a control plane"));
  EXPECT_THAT(check_text(three, {{}, "w1"}).rules(), IsEmpty());
  const auto bound = std::string(three) + "[all:vars]\nkube_apiserver_bind_address=10.20.0.12\n";
  EXPECT_THAT(check_text(bound, {{}, "cp2"}).rules(), IsEmpty());
}

TEST(InventoryCheck, ABindAddressThatPutsTheProxyOnControlPlanesIsNamed) {
  EXPECT_THAT(with_vars("kube_apiserver_bind_address=0.0.0.0\n").rules(),
              ElementsAre("port-conflict", "port-conflict", "port-conflict"));
}

TEST(InventoryCheck, AuditingWithoutARuleForProbesIsNamed) {
  EXPECT_THAT(with_vars("kubernetes_audit=True\n").rules(), ElementsAre("audit-readyz"));
  EXPECT_THAT(
      with_vars(
          "kubernetes_audit=True\naudit_policy_custom_rules='- nonResourceURLs: [/readyz*]'\n")
          .rules(),
      IsEmpty());
}

TEST(InventoryCheck, AZoneWithTwoOfThreeMembersStopsWrites) {
  const auto two_and_one = check_text(
      "[kube_control_plane]\na ip=10.0.0.1 zone=a\nb ip=10.0.0.2 zone=a\nc ip=10.0.0.3 "
      "zone=b\n[etcd:children]\nkube_control_plane\n");
  EXPECT_THAT(two_and_one.rules(), ElementsAre("domain-loses-quorum"));
  EXPECT_THAT(two_and_one.messages("domain-loses-quorum"), HasSubstr("without a (a and b)"));
  const auto one_each = check_text(
      "[kube_control_plane]\na ip=10.0.0.1 zone=a\nb ip=10.0.0.2 topology_zone=b\nc ip=10.0.0.3 "
      "failure_domain=c\n[etcd:children]\nkube_control_plane\n");
  EXPECT_THAT(one_each.rules(), IsEmpty());
}

TEST(InventoryCheck, LostMembersAreCounted) {
  const auto held = check_text(three, {{"cp3"}, ""});
  EXPECT_TRUE(held.result.etcd.held);
  EXPECT_EQ(held.result.etcd.spare, 0);
  EXPECT_FALSE(held.refused());
  const auto lost = check_text(three, {{"cp2", "cp3"}, ""});
  EXPECT_FALSE(lost.result.etcd.held);
  EXPECT_EQ(lost.result.etcd.spare, -1);
  EXPECT_THAT(lost.rules(), ElementsAre("quorum-lost"));
  EXPECT_TRUE(lost.refused());
}

TEST(InventoryCheck, ALostFirstControlPlaneIsNamed) {
  EXPECT_THAT(check_text(three, {{"cp1"}, ""}).rules(), ElementsAre("first-control-plane"));
}

TEST(InventoryCheck, OldGroupNamesAreMappedAndNamed) {
  const auto seen = check_text(
      "[kube-master]\ncp1 "
      "ip=10.0.0.1\n[etcd]\ncp1\n[kube-node]\nw1\n[k8s-cluster:children]\nkube-master\nkube-"
      "node\n");
  EXPECT_THAT(seen.rules(), ElementsAre("old-group-name", "old-group-name", "old-group-name"));
  EXPECT_THAT(seen.addresses(), ElementsAre("10.0.0.1"));
  ASSERT_EQ(seen.result.seen.workers.size(), 1u);
  EXPECT_EQ(seen.result.seen.workers[0].name, "w1");
}

TEST(InventoryCheck, VariablesOfK8sClusterCountWhereTheGroupIsNotDeclared) {
  const test::inventory_files files(
      {{"hosts.ini", three}, {"group_vars/k8s_cluster.yml", "kube_apiserver_port: 7443\n"}});
  auto from = files.read({"hosts.ini"});
  const auto result = check(from, {});
  EXPECT_EQ(result.seen.control_planes[0].port, 7443);
}

TEST(InventoryCheck, AMisspeltGroupIsNamed) {
  EXPECT_THAT(check_text("[kube_control_plane]\na ip=10.0.0.1\n[etcd]\na\n[kube_nodes]\nw1\n")
                  .messages("unknown-group"),
              HasSubstr("did you mean kube_node?"));
}

TEST(InventoryCheck, GroupsOfGroupsOfControlPlanesHaveNoOrder) {
  EXPECT_THAT(
      check_text(
          "[a]\nh1 ip=10.0.0.1\n[b]\nh2 "
          "ip=10.0.0.2\n[mid:children]\na\nb\n[kube_control_plane:children]\nmid\n[etcd]\nh1\n")
          .rules(),
      ElementsAre("first-control-plane"));
}

TEST(InventoryCheck, EmptyKeysOfYamlAreNoFinding) {
  const auto seen = check_text(
      "all:\n  hosts:\n    cp1: {ip: 10.20.0.11}\n    w1: {ip: 10.20.0.21}\n  children:\n"
      "    kube_control_plane:\n      hosts:\n        cp1:\n    etcd:\n      hosts:\n      "
      "children:\n"
      "        kube_control_plane:\n    kube_node:\n      hosts:\n        w1:\n    calico_rr:\n    "
      "  hosts: {}\n",
      {}, "hosts.yml");
  EXPECT_THAT(seen.rules(), IsEmpty());
}

TEST(InventoryCheck, ARunningConfigurationIsComparedWithTheInventory) {
  auto from = test::read_inventory("hosts.ini", three);
  auto result = check(from, {});
  const auto running = config::load(
      "version: 1\nupstreams:\n  - {name: cp1, address: 10.20.0.11}\n  - {name: old, address: "
      "10.20.0.9}\n  - {name: cp2, address: 10.20.0.12}\n");
  ASSERT_TRUE(running);
  check_against(running->settings, "config.yaml", from.inventory, result.seen, result.findings);
  ASSERT_EQ(result.findings.size(), 2u);
  EXPECT_THAT(result.findings[0].message, HasSubstr("lacks 10.20.0.13:6443"));
  EXPECT_THAT(result.findings[1].message, HasSubstr("has 10.20.0.9:6443 (old)"));
  EXPECT_EQ(from.inventory.describe(result.findings[1].at), "config.yaml:4");
}

TEST(InventoryReport, TheJsonHasTheAgreedKeys) {
  const auto seen = check_text(three, {{"cp1"}, ""});
  const auto text = report_json(seen.from.inventory, seen.result);
  for (const char* part :
       {"\"findings\": [",
        "\"rule\": \"first-control-plane\", \"severity\": \"warning\", \"host\": \"cp1\", \"at\": ",
        "\"etcd\": {\"members\": [\"cp1\", \"cp2\", \"cp3\"], \"majority\": 2, \"tolerated\": 1, "
        "\"topology\": \"stacked\", \"domains\": []",
        "\"failed\": [\"cp1\"], \"held\": true, \"spare\": 0",
        "{\"host\": \"cp1\", \"address\": \"10.20.0.11\", \"port\": 6443, \"from\": \"ip\"}",
        "\"workers\": [\"w1\", \"w2\"]",
        "\"access\": {\"kind\": \"localhost\", \"kubelet\": \"localhost:6443\", \"kube_proxy\": "
        "\"127.0.0.1:6443\"}"})
    EXPECT_THAT(text, HasSubstr(part));
}

}  // namespace
}  // namespace kubelane::inventory
