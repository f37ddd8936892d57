#pragma once

#include "net/reactor.hpp"
#include "proxy/upstream_pool.hpp"

#include <boost/intrusive/list.hpp>

#include <cstdint>
#include <map>

namespace kubelane::proxy {

class traffic_ledger;

/// One connection's share in what is known about its upstream: the pool counts it as open for as
/// long as this lives, and every transfer is noted in the upstream's `activity`.
class traffic {
 public:
  traffic(traffic_ledger& ledger, upstream_id id);
  ~traffic();
  traffic(const traffic&) = delete;
  traffic& operator=(const traffic&) = delete;

  upstream_id id() const noexcept { return id_; }
  /// Bytes of the client went to the server's socket: they want an answer.
  void sent(std::size_t bytes, time_point now) noexcept {
    activity_->bytes_up += bytes;
    last_sent_ = now;
    if (unanswered_since_ == time_point{}) unanswered_since_ = now;
    if (activity_->unanswered_since == time_point{}) activity_->unanswered_since = now;
  }
  /// Bytes came from the server.
  void heard(std::size_t bytes, time_point now) noexcept {
    activity_->bytes_down += bytes;
    activity_->last_heard = now;
    activity_->unanswered_since = {};
    unanswered_since_ = {};
  }
  /// The client sent FIN or left: it may not want an answer, so its bytes are no suspicion.
  void client_left();

 private:
  friend class traffic_ledger;
  using hook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

  traffic_ledger& ledger_;
  activity* activity_;
  hook hook_;
  time_point unanswered_since_{};  // first bytes sent since this connection heard something
  time_point last_sent_{};
  upstream_id id_;
  bool client_left_ = false;
};

/// Everyone's traffic, by upstream.
class traffic_ledger {
 public:
  /// Both outlive this.
  traffic_ledger(upstream_pool& pool, const net::reactor& loop) : pool_(pool), loop_(loop) {}

 private:
  friend class traffic;
  static constexpr std::size_t many = 64;  // upstreams that came and went
  using list =
      boost::intrusive::list<traffic,
                             boost::intrusive::member_hook<traffic, traffic::hook, &traffic::hook_>,
                             boost::intrusive::constant_time_size<false>>;

  void forget(traffic& left);

  upstream_pool& pool_;
  const net::reactor& loop_;
  std::map<upstream_id, list> by_upstream_;
};

}  // namespace kubelane::proxy
