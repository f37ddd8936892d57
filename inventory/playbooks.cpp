#include "inventory/playbooks.hpp"

#include <algorithm>

namespace kubelane::inventory {

bool contains(const names& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

names without(const names& list, const names& gone) {
  names result;
  for (const auto& one : list)
    if (!contains(gone, one)) result.push_back(one);
  return result;
}

names everyone(const membership& of) {
  names result;
  for (const auto* list : {&of.control_planes, &of.etcd, &of.workers})
    for (const auto& one : *list)
      if (!contains(result, one)) result.push_back(one);
  return result;
}

namespace {

names first_ones(const membership& now) {
  names result;
  if (!now.control_planes.empty()) result.push_back(now.control_planes.front());
  if (!now.etcd.empty() && !contains(result, now.etcd.front())) result.push_back(now.etcd.front());
  return result;
}

}  // namespace

touched by_facts(const membership& now, const names& fresh) {
  return {fresh, without(everyone(now), fresh), {}};
}

touched by_scale(const membership& now, const names& limit) {
  touched result{limit, {}, {}};
  if (!now.control_planes.empty()) result.delegates = {now.control_planes.front()};
  return result;
}

touched by_cluster(const membership& now, const names& limit) {
  return {limit.empty() ? everyone(now) : limit, {}, first_ones(now)};
}

touched by_remove_node(const membership& now, const std::string& node, bool answers) {
  touched result{{node}, {}, {}};
  if (answers) result.facts = without(everyone(now), {node});
  if (!now.control_planes.empty()) result.delegates = {now.control_planes.front()};
  if (contains(now.etcd, node)) result.delegates = first_ones(now);
  return result;
}

}  // namespace kubelane::inventory
