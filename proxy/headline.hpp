#pragma once

#include "proxy/upstream_pool.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::proxy {

/// What is shown of stacked control planes.
struct quorum_view {
  int members = 0;
  int majority = 0;
  int ready = 0;
  int spare = 0;  ///< failures left before the quorum is lost; negative: it is lost
};

/// Counts every wanted upstream as one member, the `ready` ones as ready.
quorum_view quorum_of(const pool_status& status);

/// How good the news is.
enum class tone { good, warning, bad };
const char* to_string(tone value) noexcept;  // "good", "warning", "bad"

/// One sentence for somebody who sees kubelane for the first time.
struct sentence {
  tone how = tone::good;
  std::string text;
  std::optional<time_point> since;  ///< of what it says, where that is known
};

/// What a headline tells beside the upstreams.
struct circumstances {
  std::optional<quorum_view> quorum;  ///< nothing: etcd is external
  bool stopping = false;
  bool observing = false;  ///< failover.mode is observe
  bool fallback = false;   ///< on the last good configuration
  std::string waiting;     ///< for a port that another process holds, in words; empty: for none
};

/// How many API servers are ready; each that is not, and why; whether the control plane can lose
/// another; what else is out of the ordinary. At least two sentences.
std::vector<sentence> headline(const pool_status& status, const circumstances& beside);

/// What its state means, as the rest of a sentence that begins with "it".
const char* meaning(const upstream_status& of) noexcept;
/// What a person can do about it; empty: nothing.
const char* advice(const upstream_status& of) noexcept;

}  // namespace kubelane::proxy
