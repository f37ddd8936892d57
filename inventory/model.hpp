#pragma once

#include "inventory/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kubelane::inventory {

/// A host, as its sources describe it. Groups are indices into `model::groups`.
struct host {
  std::string name;
  std::vector<int> groups;  ///< those it was put into itself
  variables vars;           ///< from the inventory's own text, not from host_vars
  place at;                 ///< where it is named first
};

/// A group. `all` and `ungrouped` always exist.
struct group {
  std::string name;
  int depth = 0;              ///< longest way up to `all`, as Ansible counts it
  int priority = 1;           ///< `ansible_group_priority`
  std::vector<int> hosts;     ///< its own, in order
  std::vector<int> children;  ///< in order
  std::vector<int> parents;
  variables vars;  ///< from the inventory's own text, not from group_vars
  place at;
};

/// What stands in `group_vars` and `host_vars` beside one source.
struct adjacent_vars {
  std::string directory;          ///< the one that holds `group_vars` and `host_vars`
  std::vector<variables> groups;  ///< by index of the group
  std::vector<variables> hosts;   ///< by index of the host
};

/// Hosts, groups and variables as Ansible holds them after reading its sources. It is built by the
/// readers in the order of the text, because what a failing source said before its fault stays.
/// Source: Ansible 2.14's inventory data.
class model {
 public:
  /// Why something cannot be done, without a place.
  using failure = std::optional<std::string>;

  model();

  /// Adds a file to those that places speak of.
  int add_file(std::string name);

  /// Index of a group, made if it is new.
  int add_group(std::string_view name, place at);

  /// Adds a host, if new, and puts it into a group. The port counts only for a new one.
  int add_host(std::string_view name, int into, std::optional<int> port, place at);

  /// Puts a group or a host into a group. Refuses a group as its own ancestor.
  failure add_child(int parent, std::string_view child);

  /// Sets a variable of the group, else the host, of that name.
  failure set_variable(std::string_view name, std::string_view key, value content);

  /// What Ansible does once all sources are read: every group is under `all`, and hosts in no other
  /// group are in `ungrouped`.
  void reconcile();

  std::optional<int> find_group(std::string_view name) const;
  std::optional<int> find_host(std::string_view name) const;

  /// A group's hosts in the order of the inventory: its own, then its children's. The same host
  /// once. Empty for a group that does not exist.
  std::vector<int> hosts_of(std::string_view group_name) const;

  /// The groups above a group, each once.
  std::vector<int> ancestors(int of) const;

  /// All groups a host is in, but `all`; those whose variables count more come later.
  std::vector<int> groups_of(int host_index) const;

  bool is_in(int host_index, std::string_view group_name) const;

  /// The value that counts for a host, or null. `all` is asked for the group of all hosts by
  /// `host_index` -1.
  const value* variable(int host_index, std::string_view key) const;

  /// All variables of a host, each with the value that counts.
  std::vector<std::pair<std::string_view, const value*>> variables_of(int host_index) const;

  /// `FILE:LINE`; `FILE` if there is no line; empty for no place.
  std::string describe(place at) const;

  std::vector<std::string> files;
  std::vector<host> hosts;
  std::vector<group> groups;
  std::vector<adjacent_vars> adjacent;  ///< by source; a later one counts more

 private:
  /// The maps that hold a host's variables; the first that has a key counts.
  std::vector<const variables*> layers(int host_index) const;
  failure add_child_group(int parent, int child);
  void deepen_children(int of);

  std::unordered_map<std::string, int> group_index_;
  std::unordered_map<std::string, int> host_index_;
};

}  // namespace kubelane::inventory
