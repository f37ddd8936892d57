#include "etcd/problems.hpp"

#include "etcd/url.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace kubelane::etcd {
namespace {

namespace quorum = health::quorum;
using severity = problem::severity;

class finder {
 public:
  finder(cluster_view& view, const survey& of, const std::vector<listed_member>& list)
      : view_(view), survey_(of), list_(list) {}

  void find_all() {
    leadership();
    for (const auto& one : view_.members) state_of(one);
    alarms();
    for (const auto& one : survey_.endpoints) endpoint(one);
    for (const auto& one : view_.members) clock(one);
    number_of_voters();
    versions();
    std::stable_sort(view_.problems.begin(), view_.problems.end(),
                     [](const problem& a, const problem& b) { return a.how < b.how; });
  }

 private:
  void add(severity how, std::string rule, std::string member, std::string message) {
    view_.problems.push_back({how, std::move(rule), std::move(member), std::move(message)});
  }
  void warn(std::string rule, std::string member, std::string message) {
    add(severity::warning, std::move(rule), std::move(member), std::move(message));
  }

  std::string name_of(member_id id) const {
    const auto* member = view_.find(id);
    return member != nullptr ? member->name() : to_hex(id);
  }

  void leadership() {
    if (view_.leader == nobody) {
      const bool any = std::any_of(view_.members.begin(), view_.members.end(),
                                   [](const member_view& one) { return one.status.has_value(); });
      if (any)
        warn("no-leader", "",
             "no member has a leader, so nothing is written: an election is under way, or too few "
             "members reach each other");
      return;
    }
    const auto* leader = view_.find(view_.leader);
    if (leader == nullptr)
      warn("leader-silent", "",
           "the others follow " + to_hex(view_.leader) + ", which their list does not have");
    else if (!leader->status)
      warn("leader-silent", leader->name(),
           leader->name() + ", which the others follow, does not answer" +
               (view_.voters.met() ? ": writes wait until another is elected" : ""));
    if (survey_.leader_changed)
      warn("leader-changed", name_of(view_.leader),
           "the leader changed while this was asked; now it is " + name_of(view_.leader));
    if (survey_.agreed && !survey_.agreed->reached)
      warn("no-agreement", "",
           "members answer, but " + survey_.agreed->url +
               " could not get them to agree: " + survey_.agreed->trouble);
  }

  void state_of(const member_view& one) {
    const auto kind = one.votes() ? std::string() : "the learner ";
    switch (one.state) {
      case member_state::up:
      case member_state::leaderless:  // said once, for all
        return;
      case member_state::behind:
        return warn("member-behind", one.name(), kind + one.name() + " is " + one.cause);
      case member_state::cut_off:
        return warn("member-cut-off", one.name(),
                    kind + one.name() + " is cut off from the others: " + one.cause);
      case member_state::down:
        return warn("member-down", one.name(),
                    kind + one.name() + " does not answer (" + one.cause + ")");
      case member_state::not_started:
        return warn("member-not-started", one.name(),
                    kind + one.name() + " (" + peer_of(one) + ") was added and never started" +
                        (one.votes() ? "; it counts for the majority already" : ""));
    }
  }

  static std::string peer_of(const member_view& one) {
    return one.listed.peer_urls.empty() ? "no peer URL" : one.listed.peer_urls.front();
  }

  void alarms() {
    for (const auto& raised : view_.alarms) {
      const auto name = name_of(raised.member);
      if (raised.kind == "NOSPACE")
        warn("alarm", name,
             "NOSPACE at " + name +
                 ": its database reached the quota, and every write is refused; compact, "
                 "defragment each member, then `etcdctl alarm disarm`");
      else if (raised.kind == "CORRUPT")
        warn("alarm", name,
             "CORRUPT at " + name +
                 ": its data is not the others'; take it out and add it again with empty data");
      else
        warn("alarm", name, raised.kind + " at " + name);
    }
  }

  void endpoint(const endpoint_answers& one) {
    if (!one.status) return silent_endpoint(one);
    const auto& status = *one.status;
    if (view_.cluster != 0 && status.cluster != view_.cluster)
      return warn("other-cluster", "",
                  one.url + " belongs to another cluster (" + to_hex(status.cluster) + ", not " +
                      to_hex(view_.cluster) + ")");
    const auto* member = view_.find(status.id);
    if (member == nullptr)
      return warn("removed-member-runs", to_hex(status.id),
                  one.url + " runs as " + to_hex(status.id) +
                      ", which is no member: it was removed; stop it there and delete its data");
    if (member->endpoint != one.url && one.was_given)
      add(severity::notice, "duplicate-endpoint", member->name(),
          one.url + " and " + member->endpoint + " are the same member, " + member->name());
    const bool counts = member->state == member_state::up || member->state == member_state::behind;
    if (one.members && counts && !same_list(*one.members))
      warn("lists-differ", member->name(),
           member->name() + " has another list of members: " + difference(*one.members));
  }

  // One that is no known member's address; members that do not answer are said as such.
  void silent_endpoint(const endpoint_answers& one) {
    for (const auto& member : list_)
      for (const auto& text : member.client_urls) {
        const auto parsed = parse_url(text);
        if (parsed && to_string(*parsed) == one.url) return;
      }
    add(severity::notice, "endpoint-silent", "",
        one.url + ": " + one.trouble + "; no member announces that address");
  }

  using roles = std::map<member_id, bool>;
  static roles roles_in(const std::vector<listed_member>& list) {
    roles result;
    for (const auto& one : list) result[one.id] = one.is_learner;
    return result;
  }
  bool same_list(const std::vector<listed_member>& other) const {
    return roles_in(list_) == roles_in(other);
  }

  std::string difference(const std::vector<listed_member>& other) const {
    const auto ours = roles_in(list_), theirs = roles_in(other);
    std::string words;
    const auto add_words = [&](const std::string& text) {
      words += (words.empty() ? "" : ", ") + text;
    };
    for (const auto& [id, learner] : ours) {
      const auto found = theirs.find(id);
      if (found == theirs.end())
        add_words("without " + name_of(id));
      else if (found->second != learner)
        add_words(name_of(id) + (found->second ? " as a learner" : " as a voter"));
    }
    for (const auto& [id, learner] : theirs)
      if (!ours.contains(id)) add_words("with " + to_hex(id));
    return words;
  }

  void clock(const member_view& one) {
    if (!one.clock_apart) return;
    const auto seconds = one.clock_apart->count() / 1000.0;
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", seconds < 0 ? -seconds : seconds);
    warn("clocks-apart", one.name(),
         "the clock of " + one.name() + " is at least " + text + " s " +
             (seconds < 0 ? "behind" : "ahead of") + " the others'");
  }

  void number_of_voters() {
    const int voters = view_.voters.members;
    if (voters == 0 || voters % 2 != 0) return;
    add(severity::notice, "even-members", "",
        std::to_string(voters) + " voters tolerate " + std::to_string(quorum::tolerated(voters)) +
            (quorum::tolerated(voters) == 1 ? " failure" : " failures") + ", no more than " +
            std::to_string(voters - 1) + (voters == 2 ? " does" : " do"));
  }

  void versions() {
    std::map<std::string, std::string> names;
    for (const auto& one : view_.members)
      if (one.status)
        names[one.status->version] += (names[one.status->version].empty() ? "" : ", ") + one.name();
    if (names.size() < 2) return;
    std::string words;
    for (const auto& [version, who] : names)
      words += (words.empty() ? "" : "; ") + version + ": " + who;
    add(severity::notice, "versions-differ", "", "members run different versions (" + words + ")");
  }

  cluster_view& view_;
  const survey& survey_;
  const std::vector<listed_member>& list_;
};

}  // namespace

void add_problems(cluster_view& view, const survey& of, const std::vector<listed_member>& list) {
  finder(view, of, list).find_all();
}

void add_endpoint_problems(cluster_view& view, const survey& of) {
  for (const auto& one : of.endpoints)
    view.problems.push_back({severity::warning, one.status ? "no-list" : "endpoint-silent", "",
                             one.url + ": " + one.trouble});
}

}  // namespace kubelane::etcd
