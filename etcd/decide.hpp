#pragma once

#include "etcd/view.hpp"
#include "health/quorum.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubelane::etcd {

/// One thing to do, and the command for it; nothing is done from here.
struct step {
  std::string what;
  std::string command;
};

/// What is to happen to a member.
enum class intent {
  remove,   ///< it leaves the membership
  without,  ///< it reboots, or is away for a while, and stays a member
};

struct decision {
  intent wanted = intent::remove;
  member_id id = nobody;
  std::string member;
  bool safe = false;                 ///< now, as things are
  std::vector<std::string> reasons;  ///< why not; empty if safe
  std::vector<std::string> notes;    ///< what else to know
  std::vector<step> steps;           ///< in this order: move the leader, act, verify
  health::quorum::standing before, after;
};

/// The member of this name or ID; or why there is none, with the names there are.
boost::system::result<const member_view*, std::string> find_member(const cluster_view& in,
                                                                   std::string_view name);

/// Whether `member` of `in` may go now.
///
/// It may if writes are agreed on, a majority is left without it, every other voter is up (one at a
/// time over the cluster), nothing is alarmed, and it does not lead: an election would stop writes
/// for a moment, a moved leader does not. A learner may always go, for it does not vote; so may, to
/// reboot, one that is down already. `variables` is what the commands need besides
/// ETCDCTL_ENDPOINTS, as a shell's assignments, each with a blank after it. (Options would not do:
/// etcdctl 3.4 refuses one whose variable is set, too.)
decision decide(const cluster_view& in, const member_view& member, intent wanted,
                const std::string& variables);

}  // namespace kubelane::etcd
