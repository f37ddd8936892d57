#pragma once

#include "health/suspicion.hpp"
#include "health/tracker.hpp"
#include "proxy/closing.hpp"
#include "proxy/upstream_pool.hpp"

#include <memory>
#include <optional>
#include <span>

namespace kubelane::proxy {

/// Everything the pool knows of one upstream. Only the pool and its pure helpers see it.
struct pool_member {
  pool_member(upstream_id its_id, wanted_upstream its_want, health::tracker its_tracker,
              health::suspicion its_suspicion)
      : id(its_id),
        want(std::move(its_want)),
        tracker(std::move(its_tracker)),
        suspicion(its_suspicion) {}

  upstream_id id;
  wanted_upstream want;
  std::optional<time_point> removed;  ///< since when it is no longer wanted
  health::tracker tracker;
  health::suspicion suspicion;
  class closing closing;
  activity act;
  std::size_t connections = 0;
  std::optional<std::chrono::microseconds> probe;

  health::state shown = health::state::unknown;  ///< as last told
  unsigned told = 1;                             ///< matters told since then, as bits
  std::optional<time_point> left_ready;          ///< when it was last ready, if it is not now
  time_point ask_from{};  ///< a probe that begins not earlier than this is wanted

  /// Who answered while this one was silent, and how often it failed again after that.
  std::optional<witness> other;
  upstream_id other_id{};
  int confirmations = 0;
  time_point last_failed_start{};  ///< of its last probe without an answer
};

using members = std::vector<std::unique_ptr<pool_member>>;

/// What happens to two upstreams within this time may have one cause, on this side of them.
constexpr milliseconds together{10'000};

/// 1 to 4, 5 for an impostor; 0: never a candidate.
int tier_of(const pool_member& of);

/// No upstream is in the tiers 1 to 3.
bool is_panic(const members& all);

/// Why this upstream's connections have to leave, as far as its own state says.
grounds grounds_of(const pool_member& of);

/// The first evidence of a silence, moved to the later one of two verdicts within ten seconds.
std::optional<time_point> silence_of(const pool_member& of, const members& all);

/// The earliest answer to a probe begun after `after` by another upstream that failed none since;
/// it is steady if it failed none since `steady_since`.
struct found_witness {
  upstream_id by{};
  witness what;
};
std::optional<found_witness> find_witness(const pool_member& of, time_point after,
                                          time_point steady_since, const members& all);

/// The same for an upstream that lost etcd: all others that were ready in the ten seconds before
/// must have answered 200 to a probe begun two seconds after its first failure. One that did not is
/// passed over when it has been red, and all others green, for ten seconds.
struct etcd_witness {
  std::optional<witness> what;
  std::optional<time_point> ask_at;  ///< what the others answer then will decide
};
etcd_witness find_etcd_witness(const pool_member& of, time_point first, const members& all);

}  // namespace kubelane::proxy
