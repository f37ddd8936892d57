#include "inventory/planner.hpp"

#include <algorithm>

namespace kubelane::inventory {

namespace quorum_of = health::quorum;

namespace {

quorum_state state_of(quorum_of::standing now) {
  return {now.members, quorum_of::majority(now.members), std::max(0, now.spare())};
}

}  // namespace

planner::planner(end before, end after, names failed, plan& into)
    : before_(std::move(before)),
      after_(std::move(after)),
      failed_(std::move(failed)),
      into_(into),
      now_(before_.is) {}

void planner::run() {
  if (!lost_now().empty()) return recover();
  const auto differ = [](const names& a, const names& b) {
    return !without(a, b).empty() || !without(b, a).empty();
  };
  if (differ(before_.is.etcd, after_.is.etcd) ||
      differ(before_.is.control_planes, after_.is.control_planes))
    snapshot();
  if (before_.is.control_planes.front() != after_.is.control_planes.front())
    into_.notes.push_back("first-control-plane: the first control plane changes from " +
                          before_.is.control_planes.front() + " to " +
                          after_.is.control_planes.front());
  using part = void (planner::*)();
  for (const part each : {&planner::remove_failed, &planner::remove_promoted, &planner::add_servers,
                          &planner::reorder, &planner::remove_servers, &planner::add_workers,
                          &planner::remove_workers}) {
    (this->*each)();
    if (refused()) return;
  }
}

names planner::lost_now() const {
  names lost;
  for (const auto& one : now_.etcd)
    if (!answers(one)) lost.push_back(one);
  return standing().met() ? names{} : lost;
}

quorum_of::standing planner::standing() const {
  const auto up = std::count_if(now_.etcd.begin(), now_.etcd.end(),
                                [this](const std::string& one) { return answers(one); });
  return {static_cast<int>(now_.etcd.size()), static_cast<int>(up)};
}

quorum_state planner::quorum() const {
  return state_of(standing());
}

// A member counts from the moment it is added, and answers only once it has caught up.
quorum_state planner::quorum_while_adding(int members) const {
  auto next = quorum_of::add(standing());
  auto worst = next;
  for (int i = 2; i <= members; ++i) {
    ++next.up;  // the one before it has caught up
    next = quorum_of::add(next);
    if (next.spare() < worst.spare()) worst = next;
  }
  return state_of(worst);
}

plan_step planner::start(std::string what) const {
  plan_step step;
  step.what = std::move(what);
  step.before = step.during = step.after = quorum();
  return step;
}

void planner::finish(plan_step step) {
  step.after = quorum();
  into_.steps.push_back(std::move(step));
}

void planner::refuse(std::string step, std::string why) {
  into_.refused = plan_refusal{std::move(step), std::move(why)};
}

std::string planner::inventory_of(const membership& state) const {
  if (state == before_.is) return before_.path;
  if (state == after_.is) return after_.path;
  return "STAGED";
}

std::string planner::inventory() const {
  return inventory_of(now_);
}

std::string planner::playbook(const std::string& rest) const {
  return "ansible-playbook -i " + inventory() + " -b " + rest;
}

std::string planner::rows(const names& hosts) {
  std::string result;
  for (const auto& one : hosts) result += (result.empty() ? "" : ",") + one;
  return result;
}

// A member that does not answer keeps etcd from growing, and goes first.
void planner::remove_failed() {
  for (const auto& host : names(failed_)) {
    const bool is_server = contains(now_.control_planes, host) || contains(now_.etcd, host);
    const bool stays = contains(after_.is.control_planes, host) || contains(after_.is.etcd, host);
    if (!is_server || stays) continue;
    if (contains(now_.control_planes, host) && now_.control_planes.front() == host) reorder();
    if (refused()) return;
    remove_server(host);
    if (refused()) return;
  }
}

void planner::remove_promoted() {
  for (const auto& host : names(now_.workers)) {
    if (!contains(after_.is.control_planes, host) && !contains(after_.is.etcd, host)) continue;
    if (contains(now_.etcd, host)) continue;
    remove_one(host, "worker");
    if (refused()) return;
  }
}

void planner::add_servers() {
  const auto added = without(after_.is.control_planes, now_.control_planes);
  const auto members = without(after_.is.etcd, now_.etcd);
  if (added.empty() && members.empty()) return;
  for (const auto& one : now_.etcd)
    if (!answers(one) && !members.empty())
      return refuse("add " + join(members) + " to etcd",
                    one +
                        " does not answer, and etcd takes no new member then: remove it first "
                        "(leave it out of " +
                        after_.path + ") or bring it back");
  join_servers(added, members);
}

void planner::reorder() {
  const auto& wanted = after_.is.control_planes;
  if (now_.control_planes.empty() || wanted.empty()) return;
  const auto& first = now_.control_planes.front();
  if (first == wanted.front() && answers(first)) return;
  const auto able = [&](const std::string& one) {
    return answers(one) && contains(wanted, one) && contains(now_.control_planes, one);
  };
  auto next = std::find_if(wanted.begin(), wanted.end(), able);
  if (next == wanted.end())
    return refuse("put another control plane before " + first,
                  "no control plane of " + after_.path +
                      " runs yet: add one first, in a plan of "
                      "its own");
  if (*next == first) return;
  put_first(*next);
}

void planner::remove_servers() {
  auto gone = without(now_.control_planes, after_.is.control_planes);
  for (const auto& one : without(now_.etcd, after_.is.etcd))
    if (!contains(gone, one)) gone.push_back(one);
  for (const auto& host : gone) {
    const bool stays_a_server =
        contains(after_.is.control_planes, host) || contains(after_.is.etcd, host);
    if (stays_a_server)
      return refuse(
          "remove " + host + " from one of kube_control_plane and etcd",
          "remove-node.yml takes the whole host out of the cluster: remove it in one plan "
          "and add it again in the next");
    remove_server(host);
    if (refused()) return;
  }
  if (!gone.empty()) refresh_members();
}

bool planner::may_remove_member(const std::string& host) {
  if (!contains(now_.etcd, host)) return true;
  using quorum_of::member_is;
  const auto after = quorum_of::remove(standing(), answers(host) ? member_is::up : member_is::down);
  if (after.met()) return true;
  refuse("remove " + host + " from etcd", "quorum-lost: " + quorum_of::removal_in_words(after));
  return false;
}

void planner::remove_server(const std::string& host) {
  if (contains(now_.control_planes, host) && now_.control_planes.size() == 1)
    return refuse("remove " + host, "it is the only control plane");
  if (contains(now_.control_planes, host) && now_.control_planes.front() == host)
    return refuse("remove " + host,
                  "first-control-plane: kubespray cannot remove the first control "
                  "plane; put another before it");
  if (!may_remove_member(host)) return;
  if (contains(now_.control_planes, host)) {
    auto next = now_;
    std::erase(next.control_planes, host);
    std::erase(next.etcd, host);
    reconfigure(next, "Take " + host + " off every worker's kubelane, before it goes");
  }
  remove_one(host, contains(now_.etcd, host) ? "member" : "control plane");
}

void planner::add_workers() {
  const auto added = without(after_.is.workers, now_.workers);
  if (added.empty()) return;
  now_.workers = after_.is.workers;
  for (const auto& one : before_.is.workers)
    if (!contains(now_.workers, one) && !contains(now_.control_planes, one) &&
        !contains(now_.etcd, one))
      now_.workers.push_back(one);
  gather_facts(added);
  auto proxy =
      start("Give " + join(added) + " its kubelane, which has to answer while the node joins");
  proxy.command = "kubelane inventory config " + inventory() + " --output kubelane.d";
  proxy.hosts.changes = added;
  proxy.workers_reconfigured = same_interval ? added : now_.workers;
  proxy.sees = same_interval ? "nothing on the other workers"
                             : "the fleet's size changes the probe interval on every worker";
  proxy.verify = "kubelane check --config /etc/kubelane/config.yaml on each of them";
  proxy.undo = "systemctl disable --now kubelane on each of them";
  finish(std::move(proxy));
  auto scale = start("Join " + join(added) + " as " + (added.size() == 1 ? "a worker" : "workers") +
                     ". Without --limit, scale.yml would run on every worker and control plane");
  scale.command = playbook("scale.yml --limit=" + rows(added));
  scale.hosts = by_scale(now_, added);
  scale.sees = "nothing: no API server changes";
  scale.verify =
      "kubectl get nodes: " + join(added) + (added.size() == 1 ? " is" : " are") + " Ready";
  scale.undo = playbook("remove-node.yml -e node=" + rows(added));
  finish(std::move(scale));
}

void planner::remove_workers() {
  for (const auto& host : without(now_.workers, after_.is.workers)) {
    if (contains(now_.control_planes, host) || contains(now_.etcd, host)) continue;
    remove_one(host, "worker");
    if (refused()) return;
  }
}

}  // namespace kubelane::inventory
