#pragma once

#include "proxy/balancer.hpp"
#include "proxy/closing.hpp"
#include "proxy/member.hpp"
#include "proxy/upstream_pool.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace kubelane::proxy {

/// The pool's inside: upstream_pool.cpp takes evidence and answers questions, upstream_review.cpp
/// draws the consequences.
struct upstream_pool::impl {
  impl(const config::config& with, std::function<double()> random);

  pool_member* find(upstream_id id) const;
  pool_member* find(const wanted_upstream& like) const;
  pool_member& add(const wanted_upstream& want);
  void update(pool_member& it, const wanted_upstream& want, time_point now);
  void remove(pool_member& it, time_point now);
  void forget_removed(time_point now);

  void ask(pool_member& it);
  void ask(pool_member& it, time_point from);
  probe_now& request_of(const pool_member& it);
  void ask_fresh(const pool_member& it);
  void ask_others(const pool_member& than, time_point after);
  void suspect(pool_member& it, time_point now);
  bool is_late(time_point now) const;
  void learn(pool_member& it, const health::probe_report& report, health::tracker::effect what);
  void tell(pool_member& it, time_point now);
  void settle(time_point now);
  void review(time_point now);
  void watch_silence(pool_member& it);
  bool keep_witness(pool_member& it, time_point after);
  void consider(pool_member& it, bool panic, time_point now);
  std::optional<witness> witness_for(const pool_member& it, const grounds& why, time_point now);
  void close(const pool_member& it, const closing::order& how);
  choice choice_of(const pool_member& it, time_point now) const;
  upstream_status status_of(const pool_member& it, time_point now) const;

  config::config settings;
  closing_rules rules;
  std::function<double()> random01;
  balancer order;
  members all;
  std::vector<effect> effects;
  std::vector<choice> choices;
  std::vector<const pool_member*> chosen;
  activity stray;
  time_point last_tick{};
  bool behind = false;  ///< the last tick came late: what was sent to us meanwhile is still unread
  std::uint32_t next_id = 1;
};

}  // namespace kubelane::proxy
