#include "inventory/plan.hpp"

#include "inventory/planner.hpp"

#include <algorithm>

namespace kubelane::inventory {
namespace {

names names_of(const std::vector<node>& nodes) {
  names result;
  for (const auto& one : nodes) result.push_back(one.name);
  return result;
}

membership membership_of(const verdict& of) {
  return {names_of(of.seen.control_planes), names_of(of.seen.etcd), names_of(of.seen.workers)};
}

const node* find_node(const verdict& in, const std::string& name) {
  for (const auto* list : {&in.seen.control_planes, &in.seen.etcd})
    for (const auto& one : *list)
      if (one.name == name) return &one;
  return nullptr;
}

// Errors of an inventory with which no playbook should be started.
std::optional<plan_refusal> unusable(const plan_end& end) {
  for (const auto& one : end.checked.findings) {
    if (one.how != severity::error) continue;
    for (const char* rule : {"unreadable", "unknown-group", "no-control-plane", "no-etcd",
                             "duplicate-address", "bad-address"})
      if (one.rule == rule) return plan_refusal{"read " + end.path, one.rule + ": " + one.message};
  }
  return std::nullopt;
}

std::optional<plan_refusal> even(const plan_end& before, const plan_end& after) {
  for (const auto& one : after.checked.findings)
    if (one.rule == "even-etcd")
      return plan_refusal{"change etcd from " + std::to_string(before.checked.seen.etcd.size()) +
                              " to " + std::to_string(after.checked.seen.etcd.size()) + " members",
                          "even-etcd: " + one.message};
  return std::nullopt;
}

std::optional<plan_refusal> moved(const plan_end& before, const plan_end& after) {
  for (const auto& one : after.checked.seen.control_planes) {
    const auto* was = find_node(before.checked, one.name);
    if (was == nullptr || was->address.text.empty() || one.address.text.empty()) continue;
    if (was->address.text == one.address.text) continue;
    return plan_refusal{"change the address of " + one.name + " from " + was->address.text +
                            " to " + one.address.text,
                        "certificates and etcd's member list hold the old address: remove the host "
                        "and add it again, under another name or in two plans"};
  }
  return std::nullopt;
}

}  // namespace

plan make_plan(const plan_end& before, const plan_end& after, const names& failed) {
  plan result;
  for (const auto& stop :
       {unusable(before), unusable(after), even(before, after), moved(before, after)}) {
    if (!stop) continue;
    result.refused = stop;
    return result;
  }
  planner steps({before.path, membership_of(before.checked)},
                {after.path, membership_of(after.checked)}, failed, result);
  steps.same_interval = std::clamp(before.checked.seen.nodes / 300, 1, 15) ==
                        std::clamp(after.checked.seen.nodes / 300, 1, 15);
  steps.run();
  if (!result.refused && !after.version.empty() && before.version != after.version)
    steps.upgrade(before.version, after.version);
  return result;
}

}  // namespace kubelane::inventory
