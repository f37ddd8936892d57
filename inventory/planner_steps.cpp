#include "inventory/planner.hpp"

#include <algorithm>
#include <charconv>

// The text of the steps; which comes when is planner.cpp's.

namespace kubelane::inventory {
namespace {

// kubespray's etcd hosts keep what etcdctl needs in this file.
std::string on_member(const std::string& host, const std::string& commands) {
  return "# as root on " + host + "\nset -a; . /etc/etcd.env\n" + commands;
}

constexpr const char* all_healthy = "etcdctl endpoint health --cluster: every member is healthy";

std::string s(const names& of) {
  return of.size() == 1 ? "" : "s";
}

}  // namespace

// How to make the inventory that a command calls STAGED; empty if it needs none.
std::string planner::staged() const {
  return staged(now_);
}

std::string planner::staged(const membership& state) const {
  if (inventory_of(state) != "STAGED") return {};
  return " (STAGED is " + before_.path + " with kube_control_plane: " + rows(state.control_planes) +
         "; etcd: " + rows(state.etcd) +
         (state.workers == before_.is.workers ? "" : "; workers: " + rows(state.workers)) + ")";
}

void planner::snapshot() {
  for (const auto& host : now_.etcd) {
    if (!answers(host)) continue;
    auto step = start("Save etcd, and see that the copy can be read, before any member changes");
    step.command = on_member(host,
                             "FILE=/var/backups/etcd-$(date +%Y%m%d-%H%M%S).db\n"
                             "etcdctl snapshot save $FILE\n"
                             "etcdctl snapshot status $FILE -w table");
    step.hosts.delegates = {host};
    step.sees = "nothing";
    step.verify = "the table shows a hash and more than 0 keys; copy the file off the host";
    step.undo = "rm $FILE";
    return finish(std::move(step));
  }
}

void planner::gather_facts(const names& fresh) {
  auto step = start("Gather facts of every host, without --limit, for the runs that have one");
  step.command = playbook("facts.yml");
  step.hosts = by_facts(now_, fresh);
  step.what += staged();
  step.sees = "nothing";
  step.verify = "PLAY RECAP has no unreachable and no failed host";
  step.undo = "nothing to undo";
  finish(std::move(step));
}

void planner::join_servers(const names& added, const names& new_members) {
  const auto before = quorum();
  const auto during =
      new_members.empty() ? before : quorum_while_adding(static_cast<int>(new_members.size()));
  const auto known = everyone(now_);
  for (const auto& one : added) now_.control_planes.push_back(one);
  for (const auto& one : new_members) now_.etcd.push_back(one);
  auto all = added;
  for (const auto& one : new_members)
    if (!contains(all, one)) all.push_back(one);
  gather_facts(without(all, known));
  into_.steps.back().before = into_.steps.back().during = into_.steps.back().after = before;
  const std::string limit = new_members.empty() ? "kube_control_plane" : "etcd,kube_control_plane";
  auto step = start("Join " + join(all) + ", appended at the end of " +
                    (added.empty()         ? "etcd"
                     : new_members.empty() ? "kube_control_plane"
                                           : "kube_control_plane and etcd") +
                    staged() + ". scale.yml cannot do this");
  step.command = playbook("cluster.yml --limit=" + limit);
  if (now_.etcd.size() % 2 == 0) step.command += " -e ignore_assert_errors=yes";
  if (new_members.size() > 1) step.command += " -e etcd_retries=10";
  auto reached = now_.control_planes;
  if (!new_members.empty())
    for (const auto& one : now_.etcd)
      if (!contains(reached, one)) reached.push_back(one);
  step.hosts = by_cluster(now_, reached);
  step.before = before;
  step.during = during;
  step.sees = "API servers restart one after the other; connections to each move and come back";
  step.verify = new_members.empty() ? "kubectl get nodes: " + join(all) + " Ready" : all_healthy;
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    step.undo += (step.undo.empty() ? "" : ", then ") + playbook("remove-node.yml -e node=" + *one);
  finish(std::move(step));
  if (!new_members.empty()) update_members();
  if (!added.empty()) reconfigure(now_, "Put " + join(added) + " on every worker's kubelane");
}

void planner::update_members() {
  auto step = start("Write the new list of members into every etcd and API server" + staged());
  step.command = playbook("upgrade-cluster.yml --limit=etcd,kube_control_plane");
  if (now_.etcd.size() % 2 == 0) step.command += " -e ignore_assert_errors=yes";
  auto reached = now_.control_planes;
  for (const auto& one : now_.etcd)
    if (!contains(reached, one)) reached.push_back(one);
  step.hosts = by_cluster(now_, reached);
  step.sees = "API servers restart one after the other; connections to each move and come back";
  step.verify =
      "grep etcd-servers /etc/kubernetes/manifests/kube-apiserver.yaml on each control "
      "plane names " +
      std::to_string(now_.etcd.size()) + " members";
  step.undo = "edit --etcd-servers in that file back; the kubelet restarts the API server";
  finish(std::move(step));
}

void planner::reconfigure(const membership& next, const std::string& what) {
  if (now_.workers.empty()) return;
  auto step = start(what);
  step.command =
      "kubelane inventory config " + inventory_of(next) +
      " --output kubelane.d\n# copy each file to its worker's /etc/kubelane/config.yaml; "
      "kubelane reloads by itself";
  step.what += staged(next);
  step.hosts.changes = now_.workers;
  step.workers_reconfigured = now_.workers;
  const bool fewer = next.control_planes.size() < now_.control_planes.size();
  step.sees = fewer
                  ? "no new connection goes there; those that are there leave within "
                    "drain.removed (10 s), busy ones when they are quiet"
                  : "the new upstreams turn ready at their first good answer; no connection moves";
  step.verify = "kubelane status on a worker lists " + join(next.control_planes);
  step.undo = "copy the old files back";
  finish(std::move(step));
}

void planner::put_first(const std::string& first) {
  const auto old = now_.control_planes.front();
  names limit;
  for (auto* list : {&now_.control_planes, &now_.etcd}) {
    if (!contains(*list, first)) continue;
    std::erase(*list, first);
    list->insert(list->begin(), first);
  }
  for (const auto& one : everyone(now_))
    if (answers(one)) limit.push_back(one);
  const bool is_whole = limit.size() == everyone(now_).size();
  if (!is_whole) gather_facts({});
  auto step =
      start("Put " + first + " before " + old +
            " in kube_control_plane and etcd, for playbooks delegate to the first" + staged());
  step.command = playbook("cluster.yml");
  if (!is_whole) step.command += " --limit=" + rows(limit);
  step.hosts = by_cluster(now_, is_whole ? names{} : limit);
  step.sees =
      "API servers may restart one after the other; the set of upstreams is the same, so no "
      "configuration changes";
  step.verify = "PLAY RECAP has no failed host";
  step.undo = "put " + old + " first again and run the same";
  finish(std::move(step));
  auto info = start("Point new nodes at " + first + ", for cluster-info still names " + old);
  info.command =
      "kubectl -n kube-public edit configmap cluster-info\n# server: the address of " + first;
  info.hosts.delegates = {first};
  info.sees = "nothing";
  info.verify = "kubectl -n kube-public get configmap cluster-info -o yaml | grep server";
  info.undo = "edit it back";
  finish(std::move(info));
}

void planner::move_leader(const std::string& host) {
  for (const auto& other : now_.etcd) {
    if (other == host || !answers(other)) continue;
    auto step = start("Move etcd's leadership off " + host + ", if it leads");
    step.command =
        on_member(host,
                  "etcdctl endpoint status --cluster -w table\n"
                  "etcdctl move-leader ID  # of " +
                      other + ", from `etcdctl member list`, only if " + host + " leads");
    step.hosts.delegates = {host};
    step.sees = "nothing; a move takes milliseconds, an election seconds";
    step.verify = "etcdctl endpoint status --cluster -w table: " + host + " is not the leader";
    step.undo = "nothing to undo";
    return finish(std::move(step));
  }
}

void planner::remove_one(const std::string& host, const std::string& kind) {
  const bool answering = answers(host);
  if (contains(now_.etcd, host) && answering) move_leader(host);
  const bool is_member = contains(now_.etcd, host);
  auto step = start("Remove the " + (is_member ? "control plane or etcd member " : kind + " ") +
                    host + (answering ? "" : ", which does not answer") + staged());
  step.command = playbook("remove-node.yml -e node=" + host);
  if (!answering) step.command += " -e reset_nodes=false -e allow_ungraceful_removal=true";
  step.hosts = by_remove_node(now_, host, answering);
  const bool is_server = is_member || contains(now_.control_planes, host);
  for (auto* list : {&now_.control_planes, &now_.etcd, &now_.workers}) std::erase(*list, host);
  step.what += ". Then take it out of the inventory";
  step.during = quorum();
  step.sees =
      is_server ? "nothing: it left their configuration before" : "nothing: no API server changes";
  if (is_server && now_.workers.empty()) step.sees = "nothing: there are no workers";
  step.verify = "kubectl get nodes has no " + host;
  if (is_member)
    step.verify += "; etcdctl member list has " + std::to_string(now_.etcd.size()) + " members";
  step.undo = is_server ? "append it to the inventory again and run cluster.yml, as for a new one"
                        : "run scale.yml --limit=" + host + ", as for a new one";
  if (!answering) step.undo += "; wipe it before it comes back";
  finish(std::move(step));
}

void planner::refresh_members() {
  if (before_.is.etcd == now_.etcd) return;
  gather_facts({});
  update_members();
}

void planner::recover() {
  const auto lost = lost_now();
  const auto left = without(now_.etcd, lost);
  const auto servers = without(now_.control_planes, failed_);
  if (left.empty() || servers.empty())
    return refuse("recover etcd",
                  "quorum-lost: no host answers that is a member of etcd or a "
                  "control plane; restore a snapshot on a new one first");
  auto step = start("etcd has lost its majority (" + join(lost) + " of " + join(now_.etcd) +
                    "). In " + after_.path + " put " + join(lost) +
                    " into broken_etcd with their etcd_member_name, lost control planes into "
                    "broken_kube_control_plane, and what answers (" +
                    join(left) + ") first in etcd and kube_control_plane");
  step.command = "ansible-playbook -i " + after_.path +
                 " -b recover-control-plane.yml --limit etcd,kube_control_plane -e etcd_retries=10";
  now_ = after_.is;
  for (const auto& one : lost) std::erase(failed_, one);
  auto reached = now_.control_planes;
  for (const auto& one : now_.etcd)
    if (!contains(reached, one)) reached.push_back(one);
  step.hosts = by_cluster(now_, reached);
  step.hosts.delegates = {left.front()};
  step.sees =
      "every API server not ready, for their etcd is gone; connections stay where they are "
      "until one answers";
  step.verify = all_healthy;
  step.undo =
      "none: what was not in the snapshot it starts from is lost. Keep the disks of " + join(lost);
  finish(std::move(step));
  reconfigure(now_, "Give every worker's kubelane the control planes of " + after_.path);
}

namespace {

// `1.30.4` or `v1.30.4` -> 30; -1 if it is none.
int minor_of(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  if (!version.starts_with("1.")) return -1;
  int minor = -1;
  std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return minor;
}

}  // namespace

void planner::upgrade(const std::string& from, const std::string& to) {
  const int was = minor_of(from), is = minor_of(to);
  if (was >= 0 && is >= 0 && (is < was || is > was + 1))
    return refuse(
        "upgrade Kubernetes from " + from + " to " + to,
        is < was ? "Kubernetes is not downgraded: restore etcd instead"
                 : "one minor version at a time: go to 1." + std::to_string(was + 1) + " first");
  snapshot();
  gather_facts({});
  const auto where = from.empty() ? "to " + to : "from " + from + " to " + to;
  auto servers = start("Upgrade control planes " + where + ", one after the other");
  servers.command = playbook("upgrade-cluster.yml --limit=etcd,kube_control_plane");
  auto reached = now_.control_planes;
  for (const auto& one : now_.etcd)
    if (!contains(reached, one)) reached.push_back(one);
  servers.hosts = by_cluster(now_, reached);
  servers.during.tolerated = std::max(0, servers.during.tolerated - 1);
  servers.sees = "each API server shutting down, refused and ready again in turn; connections move";
  servers.verify = "kubectl get nodes: control planes at " + to + ", Ready";
  servers.undo = "restore the snapshot; Kubernetes is not downgraded in place";
  finish(std::move(servers));
  if (now_.workers.empty()) return;
  auto workers = start("Upgrade worker" + s(now_.workers) +
                       " one at a time (serial=1; leave it out for a fifth at a time)");
  workers.command =
      playbook("upgrade-cluster.yml --limit='kube_node:!kube_control_plane' -e serial=1");
  workers.hosts = by_cluster(now_, now_.workers);
  workers.sees = "nothing: kubelane keeps running while kubelet and containerd restart";
  workers.verify = "kubectl get nodes: every node at " + to + ", Ready";
  workers.undo = "kubectl uncordon NODE for one that stays cordoned";
  finish(std::move(workers));
}

}  // namespace kubelane::inventory
