#include "inventory/model.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kubelane::inventory {
namespace {

constexpr int all = 0;
constexpr int ungrouped = 1;

bool contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// As Python's int(): of a number, a boolean, or a text of digits.
std::optional<int> to_int(const value& of) {
  int number = 0;
  switch (of.is) {
    case value::kind::boolean:
      return of.truth ? 1 : 0;
    case value::kind::real:
      if (!(std::abs(of.number) < 2e9)) return std::nullopt;
      return static_cast<int>(of.number);
    case value::kind::integer:
    case value::kind::text: {
      const auto* end = of.text.data() + of.text.size();
      const auto [stop, error] = std::from_chars(of.text.data(), end, number);
      if (error != std::errc{} || stop != end) return std::nullopt;
      return number;
    }
    case value::kind::null:
    case value::kind::list:
    case value::kind::mapping:
    case value::kind::vault:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

model::model() {
  add_group("all", {});
  add_group("ungrouped", {});
  add_child_group(all, ungrouped);
}

int model::add_file(std::string name) {
  files.push_back(std::move(name));
  return static_cast<int>(files.size()) - 1;
}

int model::add_group(std::string_view name, place at) {
  const auto [found, is_new] =
      group_index_.try_emplace(std::string(name), static_cast<int>(groups.size()));
  if (is_new) {
    group added;
    added.name = name;
    added.at = at;
    groups.push_back(std::move(added));
  }
  return found->second;
}

int model::add_host(std::string_view name, int into, std::optional<int> port, place at) {
  const auto [found, is_new] =
      host_index_.try_emplace(std::string(name), static_cast<int>(hosts.size()));
  const int index = found->second;
  if (is_new) {
    host added;
    added.name = name;
    added.at = at;
    if (port && *port != 0) added.vars["ansible_port"] = make_integer(std::to_string(*port), at);
    hosts.push_back(std::move(added));
  }
  auto& memberships = hosts[static_cast<std::size_t>(index)].groups;
  if (!contains(memberships, into)) {
    memberships.push_back(into);
    groups[static_cast<std::size_t>(into)].hosts.push_back(index);
  }
  return index;
}

model::failure model::add_child(int parent, std::string_view child) {
  if (const auto found = find_group(child)) return add_child_group(parent, *found);
  const auto found = find_host(child);
  if (!found) return "`" + std::string(child) + "` is neither a group nor a host";
  add_host(child, parent, {}, {});
  return std::nullopt;
}

model::failure model::add_child_group(int parent, int child) {
  auto& above = groups[static_cast<std::size_t>(parent)];
  auto& below = groups[static_cast<std::size_t>(child)];
  if (parent == child) return "the group `" + above.name + "` contains itself";
  if (contains(above.children, child)) return std::nullopt;
  if (contains(ancestors(parent), child))
    return "the group `" + below.name + "` contains `" + above.name + "`, which contains `" +
           below.name + "`: a loop";
  above.children.push_back(child);
  below.depth = std::max(above.depth + 1, below.depth);
  deepen_children(child);
  below.parents.push_back(parent);
  return std::nullopt;
}

// Goes on only below groups that moved, as Ansible does.
void model::deepen_children(int of) {
  int depth = groups[static_cast<std::size_t>(of)].depth;
  auto level = groups[static_cast<std::size_t>(of)].children;
  while (!level.empty()) {
    ++depth;
    std::vector<int> next;
    for (const int index : level) {
      auto& child = groups[static_cast<std::size_t>(index)];
      if (child.depth >= depth) continue;
      child.depth = depth;
      for (const int below : child.children)
        if (!contains(next, below)) next.push_back(below);
    }
    level = std::move(next);
  }
}

model::failure model::set_variable(std::string_view name, std::string_view key, value content) {
  if (const auto found = find_group(name)) {
    auto& target = groups[static_cast<std::size_t>(*found)];
    if (key != "ansible_group_priority") {
      target.vars.insert_or_assign(std::string(key), std::move(content));
      return std::nullopt;
    }
    const auto priority = to_int(content);
    if (!priority) return "ansible_group_priority is a whole number, not " + scalar_text(content);
    target.priority = *priority;
    return std::nullopt;
  }
  const auto found = find_host(name);
  if (!found) return "`" + std::string(name) + "` is neither a group nor a host";
  hosts[static_cast<std::size_t>(*found)].vars.insert_or_assign(std::string(key),
                                                                std::move(content));
  return std::nullopt;
}

void model::reconcile() {
  for (int i = 1; i < static_cast<int>(groups.size()); ++i)
    if (groups[static_cast<std::size_t>(i)].parents.empty()) add_child_group(all, i);
  std::vector<bool> leaves(hosts.size());
  for (int i = 0; i < static_cast<int>(hosts.size()); ++i) {
    auto& one = hosts[static_cast<std::size_t>(i)];
    const auto above = groups_of(i);
    if (!contains(above, ungrouped)) {
      if (above.empty()) add_host(one.name, ungrouped, {}, {});
    } else if (above.size() > 1) {
      std::erase(one.groups, ungrouped);
      leaves[static_cast<std::size_t>(i)] = true;
    }
  }
  std::erase_if(groups[ungrouped].hosts,
                [&](int index) { return leaves[static_cast<std::size_t>(index)]; });
}

std::optional<int> model::find_group(std::string_view name) const {
  const auto found = group_index_.find(std::string(name));
  if (found == group_index_.end()) return std::nullopt;
  return found->second;
}

std::optional<int> model::find_host(std::string_view name) const {
  const auto found = host_index_.find(std::string(name));
  if (found == host_index_.end()) return std::nullopt;
  return found->second;
}

std::vector<int> model::hosts_of(std::string_view group_name) const {
  const auto start = find_group(group_name);
  if (!start) return {};
  std::vector<int> order{*start};
  std::vector<bool> seen_group(groups.size()), seen_host(hosts.size());
  seen_group[static_cast<std::size_t>(*start)] = true;
  std::vector<int> result;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& current = groups[static_cast<std::size_t>(order[i])];
    for (const int index : current.hosts) {
      if (!seen_host[static_cast<std::size_t>(index)]) result.push_back(index);
      seen_host[static_cast<std::size_t>(index)] = true;
    }
    for (const int child : current.children) {
      if (!seen_group[static_cast<std::size_t>(child)]) order.push_back(child);
      seen_group[static_cast<std::size_t>(child)] = true;
    }
  }
  return result;
}

std::vector<int> model::ancestors(int of) const {
  std::vector<int> result = groups[static_cast<std::size_t>(of)].parents;
  for (std::size_t i = 0; i < result.size(); ++i)
    for (const int above : groups[static_cast<std::size_t>(result[i])].parents)
      if (!contains(result, above)) result.push_back(above);
  return result;
}

std::vector<int> model::groups_of(int host_index) const {
  std::vector<int> result = hosts[static_cast<std::size_t>(host_index)].groups;
  for (std::size_t i = 0; i < result.size(); ++i)
    for (const int above : groups[static_cast<std::size_t>(result[i])].parents)
      if (!contains(result, above)) result.push_back(above);
  std::erase(result, all);
  std::sort(result.begin(), result.end(), [this](int a, int b) {
    const auto& x = groups[static_cast<std::size_t>(a)];
    const auto& y = groups[static_cast<std::size_t>(b)];
    return std::tie(x.depth, x.priority, x.name) < std::tie(y.depth, y.priority, y.name);
  });
  return result;
}

bool model::is_in(int host_index, std::string_view group_name) const {
  const auto wanted = find_group(group_name);
  return wanted && contains(groups_of(host_index), *wanted);
}

std::vector<const variables*> model::layers(int host_index) const {
  std::vector<const variables*> result;
  const bool real = host_index >= 0;
  const auto above = real ? groups_of(host_index) : std::vector<int>{};
  const auto from_sources = [&](auto add) {
    for (auto source = adjacent.rbegin(); source != adjacent.rend(); ++source) add(*source);
  };
  if (real) {
    from_sources([&](const adjacent_vars& source) {
      result.push_back(&source.hosts[static_cast<std::size_t>(host_index)]);
    });
    result.push_back(&hosts[static_cast<std::size_t>(host_index)].vars);
  }
  from_sources([&](const adjacent_vars& source) {
    for (auto i = above.rbegin(); i != above.rend(); ++i)
      result.push_back(&source.groups[static_cast<std::size_t>(*i)]);
  });
  from_sources([&](const adjacent_vars& source) { result.push_back(&source.groups[all]); });
  for (auto i = above.rbegin(); i != above.rend(); ++i)
    result.push_back(&groups[static_cast<std::size_t>(*i)].vars);
  result.push_back(&groups[all].vars);
  return result;
}

const value* model::variable(int host_index, std::string_view key) const {
  for (const auto* layer : layers(host_index))
    if (const auto found = layer->find(key); found != layer->end()) return &found->second;
  return nullptr;
}

std::vector<std::pair<std::string_view, const value*>> model::variables_of(int host_index) const {
  std::map<std::string_view, const value*> merged;
  for (const auto* layer : layers(host_index))
    for (const auto& [key, content] : *layer) merged.try_emplace(key, &content);
  return {merged.begin(), merged.end()};
}

std::string model::describe(place at) const {
  if (at.file < 0 || static_cast<std::size_t>(at.file) >= files.size()) return {};
  const auto& file = files[static_cast<std::size_t>(at.file)];
  return at.line == 0 ? file : file + ":" + std::to_string(at.line);
}

}  // namespace kubelane::inventory
