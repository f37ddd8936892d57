#pragma once

#include "etcd/survey.hpp"
#include "health/quorum.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::etcd {

enum class member_state {
  up,           ///< answers and follows the leader
  behind,       ///< follows the leader, many entries later: not yet what it should be
  cut_off,      ///< answers, but does not follow the leader that others follow
  leaderless,   ///< answers, and nobody has a leader
  down,         ///< no answer
  not_started,  ///< was added to the list and has never run
};
std::string_view to_string(member_state state);

/// One member of the cluster's list, with what it says of itself.
struct member_view {
  listed_member listed;
  member_state state = member_state::down;
  std::string cause;                    ///< of any state but `up`, in words
  std::string endpoint;                 ///< the first URL that it answered on; empty: none
  std::optional<member_status> status;  ///< nothing: no answer
  std::uint64_t lag = 0;                ///< raft entries behind the leader
  /// By how much its clock is off the others' for certain; nothing: by no second that shows.
  std::optional<milliseconds> clock_apart;

  /// Its name; while it has none (never started) its ID.
  std::string name() const;
  bool votes() const { return !listed.is_learner; }
};

/// Something that is wrong, or worth knowing.
struct problem {
  enum class severity { warning, notice };  ///< a notice leaves a cluster healthy
  severity how = severity::warning;
  std::string rule;  ///< `member-down`; the README has them all
  std::string member;
  std::string message;
};

enum class verdict {
  healthy,
  degraded,   ///< writes are agreed on, and something is wrong
  no_quorum,  ///< no leader, or too few voters that follow it: no writes
  no_answer,  ///< nobody told who the members are
};
std::string_view to_string(verdict value);

/// What all answers amount to.
struct cluster_view {
  verdict is = verdict::no_answer;
  std::uint64_t cluster = 0;
  std::uint64_t term = 0;
  member_id leader = nobody;  ///< whom the voters follow, in the highest term
  bool settled = false;       ///< there is a leader, it answers, it did not just change
  std::vector<alarm> alarms;
  health::quorum::standing voters;   ///< up: follow the leader; answer, while there is none
  std::vector<member_view> members;  ///< by name
  std::vector<problem> problems;     ///< warnings first

  /// A leader, and a majority that follows it.
  bool has_quorum() const { return leader != nobody && voters.met(); }
  /// The member of this ID; null if there is none.
  const member_view* find(member_id id) const;
};

/// Puts all endpoints' answers together.
///
/// The list of members is taken from the endpoint that knows best: one that has a leader, in the
/// highest term, with the longest log. Members that the list does not have are no members, whatever
/// they say.
cluster_view judge(const survey& of);

/// Client URLs of listed members of which no endpoint has answered yet, and that were not asked.
std::vector<std::string> unasked(const std::vector<endpoint_answers>& so_far);

/// Whether another look may show another picture: a leader is missing or members disagree on it,
/// though enough of them answer.
bool is_unsettled(const cluster_view& view);

/// Whom to ask for an agreement: the leader, else a voter that follows it; empty if it would be in
/// vain.
std::string whom_to_ask(const cluster_view& view);

}  // namespace kubelane::etcd
