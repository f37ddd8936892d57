#include "inventory/cluster.hpp"

#include "inventory/vars.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>

namespace kubelane::inventory {
namespace {

struct old_name {
  const char* before;
  const char* now;
};
constexpr old_name old_names[] = {{"kube-master", "kube_control_plane"},
                                  {"kube-node", "kube_node"},
                                  {"calico-rr", "calico_rr"},
                                  {"no-floating", "no_floating"},
                                  {"k8s-cluster", "k8s_cluster"}};

// True if the group is new.
bool put_into(model& to, const std::vector<int>& hosts, const char* name) {
  if (hosts.empty()) return false;
  const bool is_new = !to.find_group(name);
  const int index = to.add_group(name, {});
  for (const int host : hosts)
    if (!to.is_in(host, name))
      to.add_host(to.hosts[static_cast<std::size_t>(host)].name, index, {}, {});
  return is_new;
}

}  // namespace

void add_dynamic_groups(model& to, std::vector<finding>& findings) {
  std::vector<int> added;
  for (const auto& [before, now] : old_names) {
    const auto group_index = to.find_group(before);
    if (!group_index) continue;
    const std::string note = std::string(before) == "k8s-cluster"
                                 ? "; kubespray no longer maps it"
                                 : "; kubespray still maps it to " + std::string(now);
    findings.push_back({"old-group-name", severity::warning, "",
                        to.groups[static_cast<std::size_t>(*group_index)].at,
                        std::string(before) + " is the old name of " + now + note + ", rename it"});
    if (put_into(to, to.hosts_of(before), now)) added.push_back(*to.find_group(now));
  }
  std::vector<int> nodes;
  for (const char* name : {"kube_control_plane", "kube_node", "calico_rr"})
    for (const int host : to.hosts_of(name)) nodes.push_back(host);
  if (put_into(to, nodes, "k8s_cluster")) added.push_back(*to.find_group("k8s_cluster"));
  to.reconcile();
  for (const int index : added) read_group_vars_of(index, to, findings);
}

node_address address_of(int host, const settings& from) {
  const auto ipv4 = from.truth(host, "ipv4_stack", true, "bad-address");
  if (!ipv4) return {"", "template", from.get(host, "ipv4_stack").at()};
  for (const char* key : {*ipv4 ? "access_ip" : "access_ip6", *ipv4 ? "ip" : "ip6"}) {
    const auto found = from.get(host, key);
    if (found.is == setting::state::unset) continue;
    if (found.is == setting::state::unknown) return {"", "template", found.at()};
    auto text = found.content->is == value::kind::text ? found.content->text : std::string();
    if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
    boost::system::error_code error;
    const auto address = boost::asio::ip::make_address(text, error);
    return {error ? "" : address.to_string(), key, found.at()};
  }
  return {"", "facts", {}};
}

namespace {

node make_node(const model& of, int host, const settings& from) {
  node result;
  result.host = host;
  result.name = of.hosts[static_cast<std::size_t>(host)].name;
  result.address = address_of(host, from);
  result.is_control_plane = of.is_in(host, "kube_control_plane");
  for (const char* key : {"zone", "topology_zone", "failure_domain"}) {
    const auto found = from.get(host, key);
    if (found.is != setting::state::set || !is_true(*found.content)) continue;
    result.zone = scalar_text(*found.content);
    result.zone_at = found.at();
    break;
  }
  return result;
}

}  // namespace

cluster view(const model& of, const settings& from) {
  cluster result;
  for (const int host : of.hosts_of("kube_control_plane")) {
    result.control_planes.push_back(make_node(of, host, from));
    result.control_planes.back().port = from.port(host, "kube_apiserver_port", 6443);
  }
  result.has_etcd_group = of.find_group("etcd").has_value();
  if (result.has_etcd_group)
    for (const int host : of.hosts_of("etcd")) result.etcd.push_back(make_node(of, host, from));
  else
    result.etcd = result.control_planes;
  result.is_stacked = std::all_of(result.etcd.begin(), result.etcd.end(),
                                  [](const node& one) { return one.is_control_plane; });
  auto nodes = of.hosts_of("kube_node");
  std::vector<bool> known(of.hosts.size());
  for (const int host : nodes) known[static_cast<std::size_t>(host)] = true;
  for (const int host : of.hosts_of("k8s_cluster"))
    if (!known[static_cast<std::size_t>(host)]) nodes.push_back(host);
  result.nodes = static_cast<int>(nodes.size());
  for (const int host : nodes)
    if (!of.is_in(host, "kube_control_plane")) result.workers.push_back(make_node(of, host, from));
  result.access = access_of(result, from);
  return result;
}

std::string join_port(std::string_view host, int port) {
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  const std::string text(host);
  return (is_ipv6 ? "[" + text + "]" : text) + ":" + std::to_string(port);
}

}  // namespace kubelane::inventory
