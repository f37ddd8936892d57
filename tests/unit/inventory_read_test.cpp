#include "inventory/hosts.hpp"
#include "inventory/listing.hpp"
#include "inventory/literal.hpp"
#include "inventory/yaml_document.hpp"
#include "inventory/yaml_scalar.hpp"
#include "inventory_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace kubelane::inventory {
namespace {

using test::inventory_files;
using test::messages;
using test::read_inventory;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_in(const reading& from, std::string_view group) {
  std::vector<std::string> result;
  for (const int i : from.inventory.hosts_of(group))
    result.push_back(from.inventory.hosts[static_cast<std::size_t>(i)].name);
  return result;
}

std::string where(const reading& from, std::string_view host, std::string_view key) {
  const auto* found = from.inventory.variable(*from.inventory.find_host(host), key);
  if (found == nullptr) return "nowhere";
  const auto at = from.inventory.describe(found->at);
  return at.substr(at.rfind('/') + 1);
}

TEST(InventoryRead, EveryValueKnowsItsFileAndLine) {
  const inventory_files files({{"hosts.ini", "[g]\nh1 a=1\n[g:vars]\nb=2\n"},
                               {"group_vars/all.yml", "---\nc: 3\n"},
                               {"host_vars/h1.yml", "# note\n\nd: 4\n"}});
  const auto seen = files.read({"hosts.ini"});
  EXPECT_EQ(where(seen, "h1", "a"), "hosts.ini:2");
  EXPECT_EQ(where(seen, "h1", "b"), "hosts.ini:4");
  EXPECT_EQ(where(seen, "h1", "c"), "all.yml:2");
  EXPECT_EQ(where(seen, "h1", "d"), "h1.yml:3");
  EXPECT_EQ(where(seen, "h1", "e"), "nowhere");
}

TEST(InventoryRead, AnUndefinedChildGroupIsNamedWithWhatWasMeant) {
  const auto seen = read_inventory("hosts.ini",
                                   "[all]\ncp1 ip=10.20.0.11\n[kube_control_plane]\ncp1\n"
                                   "[k8s_cluster:children]\nkube_control_plane\nkube_nodes\n");
  EXPECT_THAT(
      messages(seen, "unknown-group"),
      ElementsAre(HasSubstr("hosts.ini:7: [k8s_cluster:children] names the group "
                            "`kube_nodes`, which is not declared (did you mean kube_node?)")));
}

TEST(InventoryRead, BlanksAroundEqualsAreExplained) {
  const auto seen = read_inventory("hosts.ini", "[g]\nm1 ip = 10.20.0.11\n");
  EXPECT_THAT(messages(seen, "unreadable"),
              ElementsAre(AllOf(HasSubstr("hosts.ini:2: "), HasSubstr("no blanks around `=`"))));
}

TEST(InventoryRead, ASemicolonAfterAHostIsExplained) {
  const auto seen = read_inventory("hosts.ini", "[g]\nm2 ip=10.20.0.12 ; note\n");
  EXPECT_THAT(messages(seen, "unreadable"),
              ElementsAre(HasSubstr("a comment after a host starts with #")));
}

TEST(InventoryRead, YamlInAnIniFileIsSaidToBeThat) {
  const auto seen = read_inventory("hosts.ini", "all:\n  hosts:\n    cp1: {ip: 10.20.0.11}\n");
  EXPECT_THAT(messages(seen, "unreadable"), ElementsAre(HasSubstr("rename it to .yml or .yaml")));
}

TEST(InventoryRead, ADirectoryOfIniFilesAloneIsSaidToBeEmpty) {
  const std::map<std::string, std::string> one{{"inv/inventory.ini", "[g]\nh1\n"}};
  const inventory_files files(one);
  EXPECT_THAT(messages(files.read({"inv"}), "unreadable"),
              ElementsAre(HasSubstr("name the file itself")));
}

TEST(InventoryRead, AVaultedFileIsNamedNotGuessed) {
  const inventory_files files(
      {{"hosts.ini", "[g]\nh1\n"}, {"group_vars/g.yml", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"}});
  EXPECT_THAT(messages(files.read({"hosts.ini"}), "unreadable"),
              ElementsAre(HasSubstr("encrypted with ansible-vault")));
}

TEST(InventoryRead, ADynamicInventoryIsLeftToAnsible) {
  const auto seen = read_inventory("aws.yml", "plugin: aws_ec2\nregions: [eu-west-1]\n");
  EXPECT_THAT(messages(seen, "unreadable"), ElementsAre(HasSubstr("--list | kubelane inventory")));
}

TEST(InventoryRead, AHostTwiceInAGroupIsANotice) {
  const auto seen = read_inventory("hosts.ini", "[etcd]\ncp1\ncp1\n");
  ASSERT_EQ(seen.findings.size(), 1u);
  EXPECT_EQ(seen.findings.front().how, severity::notice);
  EXPECT_EQ(seen.findings.front().rule, "duplicate-host");
  EXPECT_THAT(names_in(seen, "etcd"), ElementsAre("cp1"));
}

TEST(InventoryRead, AHostTwiceInAYamlMappingLosesTheFirst) {
  const auto seen = read_inventory("h.yml", "g:\n  hosts:\n    a: {x: 1}\n    b:\n    a: {y: 2}\n");
  EXPECT_THAT(messages(seen, "duplicate-host"), ElementsAre(HasSubstr("h.yml:5: ")));
  EXPECT_EQ(where(seen, "a", "x"), "nowhere");
}

TEST(InventoryRead, ARangeAtTheStartOfALineIsNoSection) {
  const auto seen = read_inventory("hosts.ini", "[g]\n[1:3].example\nnext\n[k]\nw\n");
  EXPECT_THAT(names_in(seen, "g"), ElementsAre("1.example", "2.example", "3.example", "next"));
  EXPECT_FALSE(seen.inventory.find_group("1:3"));
}

TEST(InventoryRead, ChildGroupsKeepTheirOrder) {
  const auto seen = read_inventory("hosts.yml",
                                   "kube_control_plane:\n  children:\n    rack_b: {hosts: {cp3: , "
                                   "cp1: }}\n    rack_a: {hosts: {cp2: }}\n");
  EXPECT_THAT(names_in(seen, "kube_control_plane"), ElementsAre("cp3", "cp1", "cp2"));
}

TEST(InventoryRead, TheJsonOfAnsibleComesFromStandardInput) {
  std::istringstream json(
      R"({"_meta": {"hostvars": {"cp1": {"ip": "10.0.0.1"}}}, "all": {"children": ["ungrouped", "g"]},)"
      "\n"
      R"("g": {"hosts": ["cp1"]}})");
  const auto seen = read({"-"}, json);
  EXPECT_THAT(names_in(seen, "g"), ElementsAre("cp1"));
  EXPECT_EQ(where(seen, "cp1", "ip"), "stdin:1");
}

TEST(InventoryRead, OtherTextOnStandardInputIsExplained) {
  std::istringstream text("[g]\nh1\n");
  EXPECT_THAT(messages(read({"-"}, text), "unreadable"),
              ElementsAre(HasSubstr("what ansible-inventory --list prints")));
}

TEST(InventoryRead, OneFaultyFileDoesNotHideAnother) {
  const inventory_files files({{"a.ini", "[g]\nh1\nbad line\n"}, {"b.ini", "[k]\nh2\n"}});
  const auto seen = files.read({"a.ini", "b.ini"});
  EXPECT_EQ(seen.refused.size(), 1u);
  EXPECT_THAT(names_in(seen, "k"), ElementsAre("h2"));
}

TEST(HostPatterns, RangesKeepTheirPadding) {
  EXPECT_THAT(expand_hosts("cp[08:11:3]")->names, ElementsAre("cp08", "cp11"));
}

TEST(HostPatterns, APortIsNoPartOfTheName) {
  const auto found = expand_hosts("[fd00::1]:2222");
  EXPECT_THAT(found->names, ElementsAre("fd00::1"));
  EXPECT_EQ(found->port, 2222);
}

TEST(HostPatterns, AreBoundedInNumberAndWork) {
  EXPECT_FALSE(expand_hosts("x[1:100000000]"));
  EXPECT_FALSE(expand_hosts("x[1:199999][1:199999][2:1]"));
  EXPECT_FALSE(expand_hosts("x[1:9][1:9][1:9][1:9][1:9][1:9][1:9]"));
}

TEST(HostPatterns, AFileOfRangesIsBounded) {
  std::string text = "[g]\n";
  for (int i = 0; i < 1000; ++i) text += "x[1:100000][2:1]\n";
  EXPECT_THAT(messages(read_inventory("hosts.ini", text), "unreadable"),
              ElementsAre(HasSubstr("more than 500000 hosts in one file")));
}

TEST(PythonLiterals, OnlyLiteralsChangeTheirType) {
  const auto kind = [](std::string_view text) {
    const auto found = parse_literal(text, {});
    return found ? found->is : value::kind::text;
  };
  EXPECT_EQ(kind("6443"), value::kind::integer);
  EXPECT_EQ(kind("8080 # note"), value::kind::integer);
  EXPECT_EQ(kind("1.5"), value::kind::real);
  EXPECT_EQ(kind("True"), value::kind::boolean);
  EXPECT_EQ(kind("[1, 'a']"), value::kind::list);
  for (const char* text : {"true", "010", "10.0.0.1", "1_", "[1, 2", "abc", "-True", "1+1", ""})
    EXPECT_EQ(kind(text), value::kind::text) << text;
}

TEST(PythonLiterals, DeepNestingIsText) {
  EXPECT_FALSE(parse_literal(std::string(5000, '[') + std::string(5000, ']'), {}));
}

TEST(YamlScalars, AreThoseOfYaml11) {
  EXPECT_EQ(resolve_plain("yes", {})->is, value::kind::boolean);
  EXPECT_EQ(resolve_plain("017", {})->text, "15");
  EXPECT_EQ(resolve_plain("0x1F", {})->text, "31");
  EXPECT_EQ(resolve_plain("1:30", {})->text, "90");
  EXPECT_EQ(resolve_plain("1e3", {})->is, value::kind::text);
  EXPECT_EQ(resolve_plain("2026-08-01", {})->text, "2026-08-01");
  EXPECT_FALSE(resolve_plain("2026-13-01", {}));
  EXPECT_FALSE(resolve_plain("=", {}));
}

TEST(YamlDocuments, ABillionLaughsAreRefused) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    text += "]\n";
  }
  const auto document = read_yaml(text, 0);
  EXPECT_FALSE(document.root);
  EXPECT_THAT(document.error.message, HasSubstr("two million values"));
}

TEST(YamlDocuments, AnAliasInsideItsOwnAnchorIsRefused) {
  EXPECT_FALSE(read_yaml("a: &x [*x]\n", 0).root);
}

TEST(YamlDocuments, DeepNestingIsRefused) {
  EXPECT_FALSE(read_yaml(std::string(10000, '['), 0).root);
  EXPECT_FALSE(read_json(std::string(10000, '['), 0).root);
}

}  // namespace
}  // namespace kubelane::inventory
