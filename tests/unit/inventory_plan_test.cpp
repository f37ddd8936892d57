#include "config/load.hpp"
#include "inventory/emit.hpp"
#include "inventory/plan.hpp"
#include "inventory_case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::inventory {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct layout {
  names control_planes, etcd, workers;
  std::string extra = "";
};

std::string text_of(const layout& of) {
  std::string text = "[kube_control_plane]\n";
  for (const auto& one : of.control_planes) text += one + "\n";
  text += "[etcd]\n";
  for (const auto& one : of.etcd) text += one + "\n";
  text += "[kube_node]\n";
  for (const auto& one : of.workers) text += one + "\n";
  int last = 0;
  text += "[all]\n";
  for (const char* host :
       {"cp1", "cp2", "cp3", "cp4", "cp5", "e1", "e2", "e3", "node4", "node5", "node6"})
    text += std::string(host) + " ip=10.0.0." + std::to_string(++last) + "\n";
  return text + of.extra;
}

plan_end end_of(const layout& of, const std::string& path, const names& failed) {
  auto from = test::read_inventory("hosts.ini", text_of(of));
  plan_end result{path, check(from, {failed, ""}), ""};
  return result;
}

plan plan_of(const layout& before, const layout& after, const names& failed = {}) {
  return make_plan(end_of(before, "OLD", failed), end_of(after, "NEW", failed), failed);
}

const layout three{{"cp1", "cp2", "cp3"}, {"cp1", "cp2", "cp3"}, {"node4", "node5"}};

layout with(names control_planes, names etcd, names workers = {"node4", "node5"}) {
  return {std::move(control_planes), std::move(etcd), std::move(workers)};
}

names commands(const plan& of) {
  names result;
  for (const auto& one : of.steps) result.push_back(one.command);
  return result;
}

// The step whose command holds a text.
const plan_step& step(const plan& of, const std::string& part) {
  for (const auto& one : of.steps)
    if (one.command.find(part) != std::string::npos) return one;
  static const plan_step none;
  ADD_FAILURE() << "no step runs " << part << "\n" << plan_text(of);
  return none;
}

std::size_t position(const plan& of, const std::string& part) {
  for (std::size_t i = 0; i < of.steps.size(); ++i)
    if (of.steps[i].command.find(part) != std::string::npos) return i;
  ADD_FAILURE() << "no step runs " << part;
  return 0;
}

TEST(InventoryPlan, ANewWorkerIsJoinedAloneAfterEveryonesFacts) {
  const auto made =
      plan_of(three, with(three.control_planes, three.etcd, {"node4", "node5", "node6"}));
  ASSERT_FALSE(made.refused);
  EXPECT_LT(position(made, "facts.yml"), position(made, "scale.yml"));
  const auto& scale = step(made, "scale.yml --limit=node6");
  EXPECT_THAT(scale.hosts.changes, ElementsAre("node6"));
  EXPECT_THAT(scale.hosts.delegates, ElementsAre("cp1"));
  EXPECT_THAT(scale.what, HasSubstr("Without --limit, scale.yml would run on every worker"));
  EXPECT_THAT(step(made, "facts.yml").command, Not(HasSubstr("--limit")));
  EXPECT_THAT(step(made, "facts.yml").hosts.facts,
              ElementsAre("cp1", "cp2", "cp3", "node4", "node5"));
}

TEST(InventoryPlan, ARemovedWorkerIsTheOnlyHostChanged) {
  const auto made = plan_of(three, with(three.control_planes, three.etcd, {"node4"}));
  ASSERT_EQ(made.steps.size(), 1u);
  EXPECT_THAT(made.steps[0].command, HasSubstr("remove-node.yml -e node=node5"));
  EXPECT_THAT(made.steps[0].hosts.changes, ElementsAre("node5"));
  EXPECT_THAT(made.steps[0].hosts.facts, ElementsAre("cp1", "cp2", "cp3", "node4"));
}

TEST(InventoryPlan, AWorkerThatDoesNotAnswerIsRemovedWithoutReset) {
  const auto made = plan_of(three, with(three.control_planes, three.etcd, {"node4"}), {"node5"});
  EXPECT_THAT(made.steps[0].command,
              HasSubstr("-e reset_nodes=false -e allow_ungraceful_removal=true"));
  EXPECT_THAT(made.steps[0].hosts.facts, IsEmpty());
}

TEST(InventoryPlan, TwoEtcdMembersAreRefused) {
  const auto made = plan_of(three, with({"cp1", "cp2"}, {"cp1", "cp2"}));
  ASSERT_TRUE(made.refused);
  EXPECT_THAT(made.refused->step, HasSubstr("from 3 to 2 members"));
  EXPECT_THAT(made.refused->why, AllOf(HasSubstr("even-etcd"), HasSubstr("a majority is 2"),
                                       HasSubstr("no more than 1 does")));
}

TEST(InventoryPlan, GrowingFromOneToThreeSavesEtcdFirstAndSaysWhatItRisks) {
  const auto made = plan_of(with({"cp1"}, {"cp1"}), three);
  ASSERT_FALSE(made.refused);
  EXPECT_THAT(made.steps[0].command,
              AllOf(HasSubstr("etcdctl snapshot save"), HasSubstr("etcdctl snapshot status")));
  const auto& join = step(made, "cluster.yml --limit=etcd,kube_control_plane");
  EXPECT_EQ(join.before.members, 1);
  EXPECT_EQ(join.during.members, 2);
  EXPECT_EQ(join.during.tolerated, 0);
  EXPECT_EQ(join.after.members, 3);
  EXPECT_EQ(join.after.tolerated, 1);
  EXPECT_THAT(step(made, "kubelane inventory config").workers_reconfigured,
              ElementsAre("node4", "node5"));
}

TEST(InventoryPlan, TheFirstControlPlaneIsPutBehindAnotherBeforeItGoes) {
  const auto made = plan_of(three, with({"cp2", "cp3", "cp4"}, {"cp2", "cp3", "cp4"}));
  ASSERT_FALSE(made.refused) << made.refused->why;
  EXPECT_THAT(made.notes, ElementsAre(HasSubstr("changes from cp1 to cp2")));
  EXPECT_LT(position(made, "cluster-info"), position(made, "remove-node.yml -e node=cp1"));
  EXPECT_LT(position(made, "move-leader"), position(made, "remove-node.yml -e node=cp1"));
  EXPECT_THAT(step(made, "remove-node.yml -e node=cp1").hosts.delegates, ElementsAre("cp2"));
  for (const auto& one : made.steps) EXPECT_GE(one.after.members, 3) << one.what;
}

TEST(InventoryPlan, ReorderingAloneChangesNoUpstream) {
  const auto made = plan_of(three, with({"cp3", "cp2", "cp1"}, {"cp3", "cp2", "cp1"}));
  ASSERT_FALSE(made.refused);
  for (const auto& one : made.steps) {
    EXPECT_THAT(one.workers_reconfigured, IsEmpty());
    EXPECT_THAT(one.command, Not(HasSubstr("remove-node")));
  }
}

TEST(InventoryPlan, ALostMemberGoesBeforeItsReplacementComes) {
  const auto made = plan_of(three, with({"cp1", "cp2", "cp4"}, {"cp1", "cp2", "cp4"}), {"cp3"});
  ASSERT_FALSE(made.refused) << made.refused->why;
  EXPECT_LT(position(made, "remove-node.yml -e node=cp3 -e reset_nodes=false"),
            position(made, "cluster.yml"));
  EXPECT_EQ(step(made, "remove-node.yml").after.members, 2);
}

TEST(InventoryPlan, AMemberIsNotAddedWhileAnotherIsLost) {
  const auto made =
      plan_of(three, with({"cp1", "cp2", "cp3", "cp4", "cp5"}, {"cp1", "cp2", "cp3", "cp4", "cp5"}),
              {"cp3"});
  ASSERT_TRUE(made.refused);
  EXPECT_THAT(made.refused->why, HasSubstr("cp3 does not answer"));
}

TEST(InventoryPlan, ARemovalThatLosesTheMajorityIsRefused) {
  const auto made = plan_of(three, with({"cp1"}, {"cp1"}), {"cp1"});
  ASSERT_TRUE(made.refused) << plan_text(made);
  const auto shrink = plan_of(three, with({"cp1", "cp2", "cp3"}, {"cp3"}), {"cp3"});
  ASSERT_TRUE(shrink.refused);
}

TEST(InventoryPlan, ALostMajorityIsRecoveredNotReconfigured) {
  const auto made = plan_of(three, three, {"cp1", "cp2"});
  ASSERT_FALSE(made.refused);
  EXPECT_THAT(
      made.steps[0].command,
      HasSubstr("recover-control-plane.yml --limit etcd,kube_control_plane -e etcd_retries=10"));
  EXPECT_THAT(made.steps[0].what, HasSubstr("broken_etcd"));
}

TEST(InventoryPlan, APromotedWorkerLeavesTheClusterFirst) {
  const auto made =
      plan_of(three, with({"cp1", "cp2", "cp3", "node5"}, {"cp1", "cp2", "cp3"}, {"node4"}));
  ASSERT_FALSE(made.refused);
  EXPECT_LT(position(made, "remove-node.yml -e node=node5"),
            position(made, "cluster.yml --limit=kube_control_plane"));
}

TEST(InventoryPlan, AnotherVersionIsRolledOutOneByOne) {
  auto before = end_of(three, "OLD", {}), after = end_of(three, "NEW", {});
  before.version = "1.30.4";
  after.version = "1.31.2";
  const auto made = make_plan(before, after, {});
  EXPECT_LT(position(made, "upgrade-cluster.yml --limit=etcd,kube_control_plane"),
            position(made, "-e serial=1"));
  after.version = "1.32.0";
  EXPECT_THAT(make_plan(before, after, {}).refused->why, HasSubstr("one minor version at a time"));
}

TEST(InventoryPlan, TheSameInventoryNeedsNothing) {
  EXPECT_THAT(commands(plan_of(three, three)), IsEmpty());
  EXPECT_THAT(plan_text(plan_of(three, three)), HasSubstr("nothing to do"));
}

TEST(InventoryPlan, EveryStepSaysHowToTellAndHowToGoBack) {
  const auto made =
      plan_of(three, with({"cp2", "cp3", "cp4"}, {"cp2", "cp3", "cp4"}, {"node5", "node6"}));
  for (const auto& one : made.steps) {
    EXPECT_FALSE(one.verify.empty()) << one.what;
    EXPECT_FALSE(one.undo.empty()) << one.what;
    EXPECT_FALSE(one.sees.empty()) << one.what;
  }
  EXPECT_THAT(plan_json(made), HasSubstr("\"refused\": null"));
  EXPECT_THAT(plan_markdown(made, "OLD", "NEW"), HasSubstr("# From OLD to NEW"));
}

struct emitted {
  std::string text;
  names reasons;
};

emitted emit_text(const std::string& inventory_text, const std::string& node = "",
                  std::optional<int> port = {}) {
  auto from = test::read_inventory("hosts.ini", inventory_text);
  const auto checked = check(from, {});
  std::vector<finding> ignored;
  const settings values(from.inventory, ignored);
  const auto made = emit_config(from.inventory, checked.seen, values, node, port, {"hosts.ini"});
  return made ? emitted{*made, {}} : emitted{"", made.error().reasons};
}

TEST(InventoryConfig, ListsExactlyTheControlPlanesAndIsAccepted) {
  const auto made = emit_text(text_of(three));
  const auto loaded = config::load(made.text);
  ASSERT_TRUE(loaded) << made.text;
  names targets;
  for (const auto& one : loaded->settings.upstreams) targets.push_back(net::to_string(one.address));
  EXPECT_THAT(targets, ElementsAre("10.0.0.1:6443", "10.0.0.2:6443", "10.0.0.3:6443"));
  EXPECT_EQ(loaded->settings.cluster.nodes, 5);
  EXPECT_EQ(loaded->settings.cluster.etcd, config::etcd_topology::stacked);
  EXPECT_THAT(made.text, HasSubstr("# ip at "));
}

TEST(InventoryConfig, TheOrderOfTheInventoryDoesNotMatter) {
  const auto without_comments = [](std::string text) {
    std::string result;
    for (std::size_t start = 0; start < text.size();) {
      const auto end = text.find('\n', start) + 1;
      const auto line = text.substr(start, end - start);
      result += line.substr(0, line.find('#')) + "\n";
      start = end;
    }
    return result;
  };
  EXPECT_EQ(without_comments(emit_text(text_of(three)).text),
            without_comments(emit_text(text_of(with({"cp3", "cp2", "cp1"}, three.etcd))).text));
}

TEST(InventoryConfig, BothPortsAreListenedOnWhereTheyDiffer) {
  auto of = three;
  of.extra = "[all:vars]\nloadbalancer_apiserver_port=7443\n";
  const auto loaded = config::load(emit_text(text_of(of)).text);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->settings.listen.size(), 4u);
}

TEST(InventoryConfig, AnAddressFromFactsIsNeverGuessed) {
  const auto made = emit_text(
      "[kube_control_plane]\ncp1 ansible_host=203.0.113.1\n[etcd]\ncp1\n[kube_node]\nw1\n");
  EXPECT_THAT(made.reasons, ElementsAre(HasSubstr("only gathered facts tell its address")));
}

TEST(InventoryConfig, AControlPlaneNeedsAnotherPort) {
  EXPECT_THAT(emit_text(text_of(three), "cp2").reasons, ElementsAre(HasSubstr("port-conflict")));
  EXPECT_THAT(emit_text(text_of(three), "cp2", 7443).text, HasSubstr("127.0.0.1:7443"));
}

TEST(InventoryConfig, ANodeGetsItsZone) {
  const std::string text =
      "[kube_control_plane]\ncp1 ip=10.0.0.1 zone=a\n[etcd]\ncp1\n[kube_node]\nw1 zone=b\nw2 "
      "zone=c\n";
  EXPECT_THAT(emit_text(text, "w1").text, HasSubstr("\nzone: b  # zone at "));
  EXPECT_THAT(emit_text(text).text, HasSubstr("# zone: differs between the workers"));
  EXPECT_THAT(emit_text(text, "w9").reasons, ElementsAre(HasSubstr("w9 is no worker")));
}

TEST(InventoryConfig, NamesAreOrderedAsNumbers) {
  EXPECT_TRUE(natural_less("cp2", "cp10"));
  EXPECT_TRUE(natural_less("cp9", "cp010"));
  EXPECT_FALSE(natural_less("cp10", "cp2"));
  EXPECT_FALSE(natural_less("a", "a"));
}

}  // namespace
}  // namespace kubelane::inventory
