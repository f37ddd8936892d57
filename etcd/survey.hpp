#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// What was asked of a cluster's members and what they said: plain data between the one who asks
// (ask) and those who judge (view).

namespace kubelane::etcd {

using milliseconds = std::chrono::milliseconds;
using member_id = std::uint64_t;
constexpr member_id nobody = 0;

/// As etcdctl prints it: hexadecimal.
std::string to_hex(member_id id);

/// A member, as another one's list has it.
struct listed_member {
  member_id id = nobody;
  std::string name;  ///< empty: it was added and has not started yet
  std::vector<std::string> peer_urls;
  std::vector<std::string> client_urls;
  bool is_learner = false;

  friend bool operator==(const listed_member&, const listed_member&) = default;
};

struct alarm {
  member_id member = nobody;
  std::string kind;  ///< `NOSPACE`, `CORRUPT`

  friend bool operator==(const alarm&, const alarm&) = default;
};

/// What a member says of itself. It needs no quorum for that.
struct member_status {
  member_id id = nobody;
  std::uint64_t cluster = 0;
  member_id leader = nobody;  ///< whom it follows; itself when it leads
  std::uint64_t term = 0;
  std::uint64_t raft_index = 0;
  std::uint64_t applied_index = 0;
  std::uint64_t db_size = 0;         ///< bytes of the file
  std::uint64_t db_size_in_use = 0;  ///< bytes in it that are not free
  std::string version;
  bool is_learner = false;
  std::vector<alarm> alarms;
};

/// The member's clock less ours. The Date of an answer has whole seconds, and the answer was on its
/// way for some time, so it is known to lie between two bounds.
struct clock_offset {
  milliseconds low{0};
  milliseconds high{0};
};

/// One endpoint and what came from it.
struct endpoint_answers {
  std::string url;
  bool was_given = true;  ///< else found in a list of members
  std::optional<member_status> status;
  std::optional<std::vector<listed_member>> members;
  std::optional<clock_offset> clock;
  std::string trouble;  ///< why there is no status, or no list, in words
};

/// One proposal that changes nothing (the list of alarms), as a proof that writes are agreed on.
struct agreement {
  bool reached = false;
  std::string url;      ///< whom it was asked of
  std::string trouble;  ///< why it was not reached, in words
};

struct survey {
  std::vector<endpoint_answers> endpoints;  ///< the given ones first
  std::optional<agreement> agreed;          ///< nothing: not asked, for too few members answered
  std::vector<alarm> alarms;                ///< from that answer
  bool leader_changed = false;              ///< while asking
};

}  // namespace kubelane::etcd
