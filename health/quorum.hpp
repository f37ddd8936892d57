#pragma once

#include <cassert>
#include <string>
#include <string_view>

namespace kubelane::health::quorum {

/// Members that must agree on each write: more than half of `members`. 0 for an empty cluster.
/// Source: etcd, "failure tolerance".
constexpr int majority(int members) noexcept {
  assert(members >= 0);
  return members == 0 ? 0 : members / 2 + 1;
}

/// Members that may fail before writes stop. Four tolerate one, as three do; two none, as one does.
constexpr int tolerated(int members) noexcept {
  return members - majority(members);
}

/// Healthy members beyond the majority; negative: how many are missing.
constexpr int spare(int members, int healthy) noexcept {
  return healthy - majority(members);
}

/// Whether `healthy` of `members` are a majority. An empty cluster has none.
constexpr bool met(int members, int healthy) noexcept {
  return members > 0 && spare(members, healthy) >= 0;
}

/// The most members that one of `zones` holds when `members` are spread as evenly as can be.
constexpr int largest_share(int members, int zones) noexcept {
  assert(zones >= 1);
  return (members + zones - 1) / zones;
}

/// How a cluster stands: members that vote, and those of them that are up.
struct standing {
  int members = 0;
  int up = 0;

  constexpr int spare() const noexcept { return quorum::spare(members, up); }
  constexpr bool met() const noexcept { return quorum::met(members, up); }
  friend constexpr bool operator==(const standing&, const standing&) = default;
};

enum class member_is { up, down };

/// `count` members that are up fail; they stay members.
constexpr standing lose(standing now, int count) noexcept {
  return {now.members, now.up - count};
}

/// One member is taken out of the membership.
constexpr standing remove(standing now, member_is which) noexcept {
  return {now.members - 1, now.up - (which == member_is::up ? 1 : 0)};
}

/// One member is added: it counts at once, and is up only when it has caught up.
constexpr standing add(standing now) noexcept {
  return {now.members + 1, now.up};
}

/// The one sentence about it, for people: `2 of 3 ready: one more failure loses quorum`. `up` is
/// the word for a member that is up.
std::string in_words(standing now, std::string_view up = "ready");

/// Why a removal that leads to `after` must not be: `of the 2 members left, 1 would answer, and a
/// majority is 2: nothing could be written`.
std::string removal_in_words(standing after);

/// What the loss of a failure domain leaves, after it: `go on, 1 more may be lost`, `stop, 1 short
/// of a majority`. It is what writes do.
std::string writes_in_words(standing after);

}  // namespace kubelane::health::quorum
