#include "etcd/view.hpp"

#include "etcd/clocks.hpp"
#include "etcd/problems.hpp"
#include "etcd/url.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace kubelane::etcd {
namespace {

namespace quorum = health::quorum;

// Entries behind the leader from which on a member is `behind`. Statuses are taken milliseconds
// apart, and a busy Kubernetes writes far less than this in that time.
constexpr std::uint64_t much_behind = 1000;

// URLs in one form; what is none stays as it is.
std::string same_form(const std::string& text) {
  const auto parsed = parse_url(text);
  return parsed ? to_string(*parsed) : text;
}

bool serves_on(const listed_member& member, const std::string& url) {
  return std::any_of(member.client_urls.begin(), member.client_urls.end(),
                     [&](const std::string& one) { return same_form(one) == url; });
}

// How far an endpoint's list can be trusted; more is better.
auto knowledge(const endpoint_answers& from) {
  const auto& status = from.status;
  return std::tuple(status && status->leader != nobody, status ? status->term : 0,
                    status ? status->raft_index : 0);
}

// The cluster that is meant: that of the first endpoint that names one.
std::uint64_t cluster_of(const survey& of) {
  for (const auto& one : of.endpoints)
    if (one.status && one.members) return one.status->cluster;
  return 0;
}

const endpoint_answers* best_informed(const survey& of, std::uint64_t cluster) {
  const endpoint_answers* best = nullptr;
  for (const auto& one : of.endpoints) {
    if (!one.members || (one.status && one.status->cluster != cluster)) continue;
    if (best == nullptr || knowledge(one) > knowledge(*best)) best = &one;
  }
  return best;
}

const endpoint_answers* answers_of(member_id id, const survey& of, std::uint64_t cluster) {
  for (const auto& one : of.endpoints)
    if (one.status && one.status->id == id && one.status->cluster == cluster) return &one;
  return nullptr;
}

std::string why_down(const listed_member& member, const survey& of) {
  std::string words;
  for (const auto& one : of.endpoints)
    if (!one.status && serves_on(member, one.url))
      words += (words.empty() ? "" : "; ") + one.url + ": " + one.trouble;
  if (!words.empty()) return words;
  return member.client_urls.empty() ? "it announces no address for clients"
                                    : "no endpoint that was asked is this member";
}

// Whom the voters follow, in the highest term in which any follows somebody.
void find_leader(cluster_view& view) {
  for (const auto& one : view.members) {
    if (!one.votes() || !one.status || one.status->leader == nobody) continue;
    if (one.status->term < view.term || (one.status->term == view.term && view.leader != nobody))
      continue;
    view.leader = one.status->leader;
    view.term = one.status->term;
  }
}

std::string cut_off_because(const member_status& status, const cluster_view& view) {
  if (status.leader == nobody) return "it answers, but has no leader, which others have";
  const auto* other = view.find(status.leader);
  return "it follows " + (other != nullptr ? other->name() : to_hex(status.leader)) + " in term " +
         std::to_string(status.term) + ", the others are in term " + std::to_string(view.term);
}

void set_state(member_view& of, const cluster_view& view, std::uint64_t leader_index) {
  if (!of.status) {
    of.state = of.listed.name.empty() ? member_state::not_started : member_state::down;
    return;
  }
  const auto& status = *of.status;
  if (view.leader == nobody) {
    of.state = member_state::leaderless;
    of.cause = "it answers, but has no leader";
    return;
  }
  if (status.leader != view.leader || status.term != view.term) {
    of.state = member_state::cut_off;
    of.cause = cut_off_because(status, view);
    return;
  }
  // What it has applied is what it can answer with.
  of.lag = leader_index > status.applied_index ? leader_index - status.applied_index : 0;
  of.state = of.lag > much_behind ? member_state::behind : member_state::up;
  if (of.state == member_state::behind)
    of.cause = std::to_string(of.lag) + " entries behind the leader";
}

void add_members(cluster_view& view, const std::vector<listed_member>& list, const survey& of) {
  for (const auto& one : list) {
    member_view member{.listed = one, .cause = {}, .endpoint = {}, .status = {}, .clock_apart = {}};
    if (const auto* answers = answers_of(one.id, of, view.cluster)) {
      member.endpoint = answers->url;
      member.status = answers->status;
    } else {
      member.cause = one.name.empty() ? "added, and never started" : why_down(one, of);
    }
    view.members.push_back(std::move(member));
  }
  std::stable_sort(
      view.members.begin(), view.members.end(),
      [](const member_view& a, const member_view& b) { return a.listed.name < b.listed.name; });
}

void add_alarms(cluster_view& view, const survey& of) {
  const auto add = [&](const alarm& raised) {
    if (std::find(view.alarms.begin(), view.alarms.end(), raised) == view.alarms.end())
      view.alarms.push_back(raised);
  };
  for (const auto& raised : of.alarms) add(raised);
  for (const auto& one : view.members)
    if (one.status)
      for (const auto& raised : one.status->alarms) add(raised);
}

bool counts(member_state state) {
  switch (state) {
    case member_state::up:
    case member_state::behind:
    case member_state::leaderless:
      return true;
    case member_state::cut_off:
    case member_state::down:
    case member_state::not_started:
      return false;
  }
  return false;
}

quorum::standing count_voters(const cluster_view& view) {
  quorum::standing result;
  for (const auto& one : view.members) {
    if (!one.votes()) continue;
    ++result.members;
    if (counts(one.state)) ++result.up;
  }
  return result;
}

verdict conclude(const cluster_view& view) {
  if (!view.has_quorum()) return verdict::no_quorum;
  const bool warned = std::any_of(view.problems.begin(), view.problems.end(), [](const problem& p) {
    return p.how == problem::severity::warning;
  });
  return warned ? verdict::degraded : verdict::healthy;
}

}  // namespace

std::string_view to_string(member_state state) {
  switch (state) {
    case member_state::up:
      return "up";
    case member_state::behind:
      return "behind";
    case member_state::cut_off:
      return "cut_off";
    case member_state::leaderless:
      return "leaderless";
    case member_state::down:
      return "down";
    case member_state::not_started:
      return "not_started";
  }
  return {};
}

std::string_view to_string(verdict value) {
  switch (value) {
    case verdict::healthy:
      return "healthy";
    case verdict::degraded:
      return "degraded";
    case verdict::no_quorum:
      return "no_quorum";
    case verdict::no_answer:
      return "no_answer";
  }
  return {};
}

std::string member_view::name() const {
  return listed.name.empty() ? to_hex(listed.id) : listed.name;
}

const member_view* cluster_view::find(member_id id) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const member_view& one) { return one.listed.id == id; });
  return found == members.end() ? nullptr : &*found;
}

cluster_view judge(const survey& of) {
  cluster_view view;
  view.cluster = cluster_of(of);
  const auto* best = best_informed(of, view.cluster);
  if (best == nullptr) {
    add_endpoint_problems(view, of);
    return view;
  }
  add_members(view, *best->members, of);
  find_leader(view);
  const auto* leader = view.find(view.leader);
  const bool leader_answers = leader != nullptr && leader->status.has_value();
  view.settled = leader_answers && !of.leader_changed;
  const auto leader_index = leader_answers ? leader->status->raft_index : 0;
  for (auto& one : view.members) set_state(one, view, leader_index);
  view.voters = count_voters(view);
  add_alarms(view, of);
  compare_clocks(view, of);
  add_problems(view, of, *best->members);
  view.is = conclude(view);
  return view;
}

std::vector<std::string> unasked(const std::vector<endpoint_answers>& so_far) {
  std::set<member_id> known;
  std::set<std::string> asked;
  for (const auto& one : so_far) {
    asked.insert(one.url);
    if (one.status) known.insert(one.status->id);
  }
  std::vector<std::string> result;
  for (const auto& from : so_far) {
    if (!from.members) continue;
    for (const auto& member : *from.members) {
      if (known.contains(member.id)) continue;
      for (const auto& text : member.client_urls) {
        const auto parsed = parse_url(text);
        if (parsed && asked.insert(to_string(*parsed)).second) result.push_back(to_string(*parsed));
      }
    }
  }
  return result;
}

bool is_unsettled(const cluster_view& view) {
  quorum::standing answering{view.voters.members, 0};
  bool disagree = view.leader == nobody;
  for (const auto& one : view.members) {
    if (!one.votes() || !one.status) continue;
    ++answering.up;
    disagree = disagree || one.state == member_state::cut_off;
  }
  return answering.met() && disagree;
}

std::string whom_to_ask(const cluster_view& view) {
  if (!view.has_quorum()) return {};
  const auto* leader = view.find(view.leader);
  if (leader != nullptr && leader->status) return leader->endpoint;
  for (const auto& one : view.members)
    if (one.votes() && one.state == member_state::up) return one.endpoint;
  return {};
}

}  // namespace kubelane::etcd
