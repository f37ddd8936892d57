#include "etcd/decide.hpp"

#include <algorithm>

namespace kubelane::etcd {
namespace {

namespace quorum = health::quorum;

bool is_up(const member_view& one) {
  return one.state == member_state::up || one.state == member_state::behind;
}

class decider {
 public:
  decider(const cluster_view& in, const member_view& member, intent wanted, std::string variables)
      : in_(in), member_(member), variables_(std::move(variables)) {
    result_.wanted = wanted;
    result_.id = member.listed.id;
    result_.member = member.name();
    result_.before = in.voters;
    result_.after = member.votes() ? after_its_loss() : in.voters;
  }

  decision decide() && {
    if (!in_.has_quorum())
      refuse_without_quorum();
    else if (member_.votes() && !changes_nothing())
      find_obstacles();
    if (removes() && member_.votes()) note_what_is_left();
    result_.safe = result_.reasons.empty();
    add_steps();
    return std::move(result_);
  }

 private:
  bool removes() const { return result_.wanted == intent::remove; }
  bool leads() const { return in_.leader == member_.listed.id; }
  bool changes_nothing() const { return !removes() && !is_up(member_) && in_.settled; }

  quorum::standing after_its_loss() const {
    using quorum::member_is;
    if (removes())
      return quorum::remove(in_.voters, is_up(member_) ? member_is::up : member_is::down);
    return is_up(member_) ? quorum::lose(in_.voters, 1) : in_.voters;
  }

  void refuse(std::string why) { result_.reasons.push_back(std::move(why)); }

  void refuse_without_quorum() {
    refuse((in_.voters.met()
                ? std::string("no member has a leader")
                : "there is no quorum now (" + quorum::in_words(in_.voters, "up") + ")") +
           ": first let writes work again; bring a member back, or restore a snapshot");
  }

  void find_obstacles() {
    if (!in_.settled) refuse("no leader is settled; ask again in a few seconds");
    for (const auto& one : in_.problems)
      if (one.rule == "no-agreement" || one.rule == "lists-differ" ||
          (one.rule == "alarm" && !is_cured_by_removal(one)))
        refuse(one.message);
    if (!result_.after.met())
      refuse(removes() ? quorum::removal_in_words(result_.after)
                       : "without it " + quorum::in_words(result_.after, "up"));
    find_others_that_are_not_up();
    if (leads() && in_.voters.members > 1)
      refuse("it leads: move the leader first, so that no write has to wait for an election");
  }

  bool is_cured_by_removal(const problem& one) const {
    return removes() && one.member == member_.name() && one.message.starts_with("CORRUPT");
  }

  // One at a time: whoever is missing already is not joined by another. A dead member may be
  // removed while it is the only one that is missing.
  void find_others_that_are_not_up() {
    for (const auto& one : in_.members) {
      if (&one == &member_ || !one.votes() || one.state == member_state::up) continue;
      refuse(one.name() + " is " + word(one.state) + ": one at a time; bring it back" +
             (removes() ? ", or remove it first" : " first"));
    }
  }

  static std::string word(member_state state) {
    auto text = std::string(to_string(state));
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }

  void note_what_is_left() {
    const int before = quorum::tolerated(result_.before.members);
    const int after = quorum::tolerated(result_.after.members);
    const int left = result_.after.members;
    if (left == 0) return;
    if (after < before)
      result_.notes.push_back(
          "leaves " + std::to_string(left) +
          (left == 1 ? " voter, which tolerates " : " voters, which tolerate ") +
          (after == 0   ? "no failure"
           : after == 1 ? "1 failure"
                        : std::to_string(after) + " failures") +
          " instead of " + std::to_string(before));
    if (left % 2 == 0)
      result_.notes.push_back(
          "an even number of voters tolerates no more than one fewer does: go on to an odd one");
  }

  std::string command(const std::string& endpoints, const std::string& rest) const {
    return "ETCDCTL_ENDPOINTS=" + endpoints + " " + variables_ + rest;
  }

  // The voters that stay and are up, to be asked.
  std::string others() const {
    std::string result;
    for (const auto& one : in_.members)
      if (&one != &member_ && one.votes() && one.state == member_state::up)
        result += (result.empty() ? "" : ",") + one.endpoint;
    return result;
  }

  const member_view* next_leader() const {
    const member_view* best = nullptr;
    for (const auto& one : in_.members) {
      if (&one == &member_ || !one.votes() || one.state != member_state::up) continue;
      if (best == nullptr || one.lag < best->lag) best = &one;
    }
    return best;
  }

  void add_steps() {
    const auto others_up = others();
    if (others_up.empty()) return;
    const auto* next = next_leader();
    if (leads() && next != nullptr && !member_.endpoint.empty())
      result_.steps.push_back(
          {"move the leader to " + next->name(),
           command(member_.endpoint, "etcdctl move-leader " + to_hex(next->listed.id))});
    const auto verify = command(others_up, "kubelane etcd status");
    if (removes()) {
      result_.steps.push_back(
          {"remove " + member_.name(),
           command(others_up, "etcdctl member remove " + to_hex(member_.listed.id))});
      result_.steps.push_back(
          {"verify: " + member_.name() + " is gone, the others are up", verify});
    } else {
      result_.steps.push_back({"reboot or stop " + member_.name() + ", and no other", ""});
      result_.steps.push_back({"verify: all are up again before the next one", verify});
    }
  }

  const cluster_view& in_;
  const member_view& member_;
  const std::string variables_;
  decision result_;
};

}  // namespace

boost::system::result<const member_view*, std::string> find_member(const cluster_view& in,
                                                                   std::string_view name) {
  const member_view* found = nullptr;
  std::string names;
  for (const auto& one : in.members) {
    names += (names.empty() ? "" : ", ") + one.name();
    if (one.name() != name && to_hex(one.listed.id) != name) continue;
    if (found != nullptr)
      return "two members are called " + std::string(name) +
             "; give one's ID: " + to_hex(found->listed.id) + " or " + to_hex(one.listed.id);
    found = &one;
  }
  if (found == nullptr) return "no member is called " + std::string(name) + "; there are " + names;
  return found;
}

decision decide(const cluster_view& in, const member_view& member, intent wanted,
                const std::string& variables) {
  return decider(in, member, wanted, variables).decide();
}

}  // namespace kubelane::etcd
