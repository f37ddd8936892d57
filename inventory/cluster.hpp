#pragma once

#include "inventory/finding.hpp"
#include "inventory/model.hpp"
#include "inventory/settings.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// A host's address that others use: kubespray's `main_access_ip`.
/// Source: kubespray's role network_facts.
struct node_address {
  std::string text;  ///< canonical, without brackets; empty if unknown or none
  /// `access_ip`, `ip`, `access_ip6`, `ip6`: the variable; `facts`: only gathered facts will tell;
  /// `template`: only Ansible can tell
  std::string from;
  place at;
};

/// A host of the cluster.
struct node {
  int host = -1;  ///< index in the model
  std::string name;
  node_address address;
  std::optional<int> port;  ///< kube_apiserver_port, where it counts: on control planes
  std::string zone;         ///< failure domain; empty: none
  place zone_at;
  bool is_control_plane = false;
};

/// How the kubelet and kube-proxy of a worker reach the API.
struct api_access {
  enum class kind { localhost, external, first_control_plane, unknown };
  kind is = kind::unknown;
  std::string kubelet;             ///< host:port
  std::string kube_proxy;          ///< host:port
  std::optional<int> proxy_port;   ///< where kubelet expects the local load balancer
  std::optional<int> server_port;  ///< where kube-proxy expects it
  std::optional<int> health_port;  ///< of the local load balancer
  place at;                        ///< of the variable that decided; none: kubespray's default
};

/// An inventory as kubespray sees it. Lists are in the order of the inventory.
struct cluster {
  std::vector<node> control_planes;
  std::vector<node> etcd;     ///< the group `etcd`, else the control planes
  std::vector<node> workers;  ///< nodes that are no control plane: where the proxy runs
  bool has_etcd_group = false;
  bool is_stacked = false;  ///< every etcd member is a control plane
  int nodes = 0;            ///< hosts of k8s_cluster
  api_access access;
};

/// Adds what kubespray makes of group names at the start of each playbook: hosts of an old name
/// (`kube-master`) are put into the new one's group, and nodes into `k8s_cluster`. Their
/// `group_vars` then count too. Old names are findings.
/// Source: kubespray's role dynamic_groups.
void add_dynamic_groups(model& to, std::vector<finding>& findings);

/// What kubespray would take a model for, after add_dynamic_groups. Findings are what keeps an
/// answer from being known.
cluster view(const model& of, const settings& from);

/// The address of one host.
node_address address_of(int host, const settings& from);

/// How workers reach the API, as the first of them would be told.
api_access access_of(const cluster& of, const settings& from);

/// `name` of an access kind, as in the JSON.
std::string_view to_string(api_access::kind kind);

/// An address and a port, IPv6 in brackets.
std::string join_port(std::string_view host, int port);

}  // namespace kubelane::inventory
