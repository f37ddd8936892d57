#include "proxy/traffic.hpp"

#include <algorithm>

namespace kubelane::proxy {

traffic::traffic(traffic_ledger& ledger, upstream_id id)
    : ledger_(ledger), activity_(&ledger.pool_.activity_of(id)), id_(id) {
  ledger_.by_upstream_[id].push_back(*this);
  ledger_.pool_.opened(id);
}

traffic::~traffic() {
  client_left();
  hook_.unlink();
  if (ledger_.by_upstream_.size() > traffic_ledger::many && ledger_.by_upstream_[id_].empty())
    ledger_.by_upstream_.erase(id_);
  ledger_.pool_.closed(id_, ledger_.loop_.now());
}

void traffic::client_left() {
  if (client_left_) return;
  client_left_ = true;
  // If another connection's bytes have been waiting for longer, nothing changes.
  if (unanswered_since_ != time_point{} && activity_->unanswered_since >= unanswered_since_)
    ledger_.forget(*this);
}

void traffic_ledger::forget(traffic& left) {
  pool_.forget_unanswered(left.id_);
  activity& known = *left.activity_;
  for (const auto& other : by_upstream_[left.id_]) {
    if (other.client_left_ || other.unanswered_since_ == time_point{}) continue;
    if (other.last_sent_ <= known.last_heard) continue;
    const auto since = std::max(other.unanswered_since_, known.last_heard);
    if (known.unanswered_since == time_point{} || since < known.unanswered_since)
      known.unanswered_since = since;
  }
}

}  // namespace kubelane::proxy
