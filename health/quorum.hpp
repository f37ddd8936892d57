#pragma once

#include <cassert>

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

}  // namespace kubelane::health::quorum
