#pragma once

#include <string>
#include <vector>

namespace kubelane::inventory {

using names = std::vector<std::string>;

/// Who is what while a plan goes on; each list in the order of the inventory.
struct membership {
  names control_planes;
  names etcd;
  names workers;
  friend bool operator==(const membership&, const membership&) = default;
};

/// Which hosts a playbook run concerns.
struct touched {
  names changes;    ///< it may change them
  names facts;      ///< it only gathers their facts
  names delegates;  ///< it runs commands there for others
};

/// All hosts, each once: control planes, etcd members, workers.
names everyone(const membership& of);

bool contains(const names& list, const std::string& name);
names without(const names& list, const names& gone);

// What kubespray's plays say about their hosts (read at its release of 2026-08). A play's `hosts`
// are cut down by --limit; what it delegates to is not.

/// facts.yml: bootstraps hosts that lack what Ansible needs (`fresh`), gathers everyone's facts.
touched by_facts(const membership& now, const names& fresh);

/// scale.yml with --limit: the limit alone. The first control plane makes the join tokens.
touched by_scale(const membership& now, const names& limit);

/// cluster.yml or upgrade-cluster.yml; an empty limit is everyone.
touched by_cluster(const membership& now, const names& limit);

/// remove-node.yml -e node=...: changes that host, and gathers the facts of all others first,
/// unless the host is not to be reset because it does not answer.
touched by_remove_node(const membership& now, const std::string& node, bool answers);

}  // namespace kubelane::inventory
