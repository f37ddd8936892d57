#include "inventory/checks.hpp"

#include "health/quorum.hpp"
#include "inventory/reader.hpp"
#include "inventory/text.hpp"

#include <algorithm>

namespace kubelane::inventory {

namespace quorum = health::quorum;

const std::vector<std::string>& rule_names() {
  static const std::vector<std::string> names = {
      "even-etcd",           "no-etcd",        "no-control-plane",
      "duplicate-address",   "bad-address",    "address-from-ansible-host-only",
      "address-unknown",     "needs-template", "worker-without-access",
      "port-conflict",       "ports-differ",   "proxy-bypassed",
      "proxy-type",          "audit-readyz",   "domain-loses-quorum",
      "old-group-name",      "unknown-group",  "duplicate-host",
      "first-control-plane", "unreadable",     "quorum-lost",
      "config-differs"};
  return names;
}

std::string join(const std::vector<std::string>& names) {
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? " and " : ", ";
    result += names[i];
  }
  return result;
}

namespace {

place place_of_group(const model& in, std::string_view name) {
  const auto index = in.find_group(name);
  return index ? in.groups[static_cast<std::size_t>(*index)].at : place{0, 0};
}

// More than one group two or more steps below: Ansible keeps no order among those.
bool is_order_open(const model& in, std::string_view name) {
  const auto top = in.find_group(name);
  if (!top) return false;
  std::size_t deep = 0;
  for (const int child : in.groups[static_cast<std::size_t>(*top)].children)
    deep += in.groups[static_cast<std::size_t>(child)].children.size();
  return deep > 1;
}

}  // namespace

void check_groups(const model& in, const cluster& seen, const settings& from,
                  std::vector<finding>& findings) {
  if (seen.control_planes.empty())
    findings.push_back({"no-control-plane", severity::error, "",
                        place_of_group(in, "kube_control_plane"),
                        "the group kube_control_plane has no hosts; kubespray stops here"});
  const auto type = from.text(-1, "etcd_deployment_type", "host");
  const auto set = !seen.control_planes.empty()
                       ? from.text(seen.control_planes.front().host, "etcd_deployment_type", "host")
                       : type;
  const bool by_kubeadm = set == "kubeadm";
  if (seen.has_etcd_group && seen.etcd.empty())
    findings.push_back({"no-etcd", severity::error, "", place_of_group(in, "etcd"),
                        by_kubeadm ? "the group etcd is there but empty; kubeadm keeps etcd on the "
                                     "control planes, so leave the group out"
                                   : "the group etcd has no hosts; kubespray stops here"});
  if (!seen.has_etcd_group && set && !by_kubeadm)
    findings.push_back({"no-etcd", severity::error, "", place{0, 0},
                        "there is no group etcd; kubespray stops here unless "
                        "etcd_deployment_type is kubeadm"});
  for (const auto& one : in.groups) {
    const auto meant = nearest(one.name, known_groups());
    const auto& known = known_groups();
    if (meant.empty() || std::find(known.begin(), known.end(), one.name) != known.end()) continue;
    if (!in.hosts_of(meant).empty()) continue;  // it is there; a name like it is no mistake
    findings.push_back({"unknown-group", severity::warning, "", one.at,
                        "kubespray knows no group " + one.name + "; did you mean " + meant + "?"});
  }
  if (is_order_open(in, "kube_control_plane"))
    findings.push_back({"first-control-plane", severity::warning, "",
                        place_of_group(in, "kube_control_plane"),
                        "kube_control_plane is made of groups of groups, whose order Ansible does "
                        "not keep, and every playbook delegates to the first control plane: name "
                        "the hosts, or the groups that hold them, in kube_control_plane itself"});
}

namespace {

std::vector<failure_domain> domains_of(const cluster& seen) {
  std::vector<failure_domain> result;
  for (const auto& one : seen.etcd) {
    if (one.zone.empty()) continue;
    auto found = std::find_if(result.begin(), result.end(),
                              [&](const failure_domain& d) { return d.name == one.zone; });
    if (found == result.end()) found = result.insert(result.end(), {one.zone, {}, false});
    found->members.push_back(one.name);
  }
  const int members = static_cast<int>(seen.etcd.size());
  for (auto& one : result)
    one.survives = quorum::lose({members, members}, static_cast<int>(one.members.size())).met();
  return result;
}

std::string even_message(int members) {
  const int fewer = members - 1;
  return std::to_string(members) + " etcd members: a majority is " +
         std::to_string(quorum::majority(members)) + ", so they tolerate " +
         std::to_string(quorum::tolerated(members)) +
         (quorum::tolerated(members) == 1 ? " failure" : " failures") + ", no more than " +
         std::to_string(fewer) + (fewer == 1 ? " does" : " do") +
         "; kubespray stops at an even number";
}

void check_domains(const cluster& seen, const etcd_verdict& etcd, std::vector<finding>& findings) {
  for (const auto& one : etcd.domains) {
    if (one.survives) continue;
    const auto first = std::find_if(seen.etcd.begin(), seen.etcd.end(),
                                    [&](const node& n) { return n.zone == one.name; });
    const auto left = seen.etcd.size() - one.members.size();
    findings.push_back({"domain-loses-quorum", severity::warning, "", first->zone_at,
                        "without " + one.name + " (" + join(one.members) + ") " +
                            std::to_string(left) + " of " + std::to_string(seen.etcd.size()) +
                            " etcd members are left, and a majority is " +
                            std::to_string(etcd.majority) + ": writes stop"});
  }
}

void check_failed(const model& in, const cluster& seen, const check_options& how,
                  etcd_verdict& etcd, std::vector<finding>& findings) {
  for (const auto& one : seen.etcd)
    if (std::find(how.failed.begin(), how.failed.end(), one.name) != how.failed.end())
      etcd.failed.push_back(one.name);
  const int members = static_cast<int>(seen.etcd.size());
  const auto after = quorum::lose({members, members}, static_cast<int>(etcd.failed.size()));
  const int left = after.up;
  etcd.held = after.met();
  etcd.spare = after.spare();
  if (!etcd.held && !how.failed.empty())
    findings.push_back({"quorum-lost", severity::error, "", place_of_group(in, "etcd"),
                        "without " + join(etcd.failed) + ", " + std::to_string(left) + " of " +
                            std::to_string(members) + " etcd members are left, and a majority is " +
                            std::to_string(etcd.majority) +
                            ": nothing can be written, whatever the API servers do; see "
                            "recover-control-plane.yml"});
  if (seen.control_planes.empty()) return;
  const auto& first = seen.control_planes.front();
  if (std::find(how.failed.begin(), how.failed.end(), first.name) == how.failed.end()) return;
  findings.push_back({"first-control-plane", severity::warning, first.name,
                      in.hosts[static_cast<std::size_t>(first.host)].at,
                      first.name +
                          " is the first control plane, to which every playbook delegates: "
                          "put it behind a working one before running any"});
}

}  // namespace

etcd_verdict check_etcd(const model& in, const cluster& seen, const check_options& how,
                        std::vector<finding>& findings) {
  etcd_verdict result;
  const int members = static_cast<int>(seen.etcd.size());
  result.majority = quorum::majority(members);
  result.tolerated = quorum::tolerated(members);
  result.domains = domains_of(seen);
  if (members > 0 && members % 2 == 0)
    findings.push_back({"even-etcd", severity::error, "",
                        place_of_group(in, seen.has_etcd_group ? "etcd" : "kube_control_plane"),
                        even_message(members)});
  check_domains(seen, result, findings);
  check_failed(in, seen, how, result, findings);
  return result;
}

verdict check(reading& from, const check_options& how) {
  verdict result;
  result.findings = from.findings;
  add_dynamic_groups(from.inventory, result.findings);
  const settings values(from.inventory, result.findings);
  result.seen = view(from.inventory, values);
  check_groups(from.inventory, result.seen, values, result.findings);
  result.etcd = check_etcd(from.inventory, result.seen, how, result.findings);
  check_addresses(from.inventory, result.seen, values, result.findings);
  check_access(from.inventory, result.seen, values, how, result.findings);
  result.has_failed = !how.failed.empty();
  const int worker = result.seen.workers.empty() ? -1 : result.seen.workers.front().host;
  if (worker >= 0 && result.seen.access.is == api_access::kind::localhost &&
      values.get(worker, "loadbalancer_apiserver_type").is == setting::state::unset)
    result.proxy_type_note =
        "  loadbalancer_apiserver_type is not set: kubespray installs nginx there; kubelane needs "
        "loadbalancer_apiserver_type: kubelane";
  return result;
}

}  // namespace kubelane::inventory
