#include "proxy/dial_plan.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr milliseconds ask_again{50};     // for an acknowledgement
constexpr milliseconds token_again{100};  // for a token

}  // namespace

using health::dial_result;

dial_plan::dial_plan(const config::dial& limits, hedge_budget& budget, std::size_t candidates,
                     time_point start)
    : limits_(limits),
      budget_(budget),
      attempts_(candidates),
      total_end_(start + limits.total_timeout) {
  for (std::uint32_t i = 0; i < candidates; ++i) queue_.push_back(i);
}

void dial_plan::begin(time_point now) {
  if (!queue_.empty()) return dial_next(dial_action::reason::first, now);
  give_up();
}

void dial_plan::connected(std::size_t i, time_point now) {
  if (done_) return;
  assert(attempts_[i].at == stage::connecting);
  attempts_[i] = {.at = stage::connected, .since = now};
  // Those dialled beside it are not needed now. They have done no wrong: their turn may come again.
  for (std::size_t other = 0; other < attempts_.size(); ++other) {
    if (attempts_[other].at != stage::connecting) continue;
    drop(other, dial_result::abandoned);
    attempts_[other] = {};
    queue_.push_back(static_cast<std::uint32_t>(other));
  }
  newest_ = i;
  relay_to_the_one_that_may();
}

void dial_plan::failed(std::size_t i, time_point now) {
  lost(i, now);
}

void dial_plan::ended(std::size_t i, time_point now) {
  lost(i, now);
}

void dial_plan::lost(std::size_t i, time_point now) {
  if (done_) return;
  attempts_[i].at = stage::over;
  relay_to_the_one_that_may();
  if (done_) return;
  if (may_dial() && (i == newest_ || !any_alive()))
    return dial_next(dial_action::reason::failover, now);
  if (!any_alive()) give_up();
}

void dial_plan::answered(std::size_t i) {
  if (!done_) relay(i);
}

void dial_plan::flight_is(flight kind, time_point) {
  if (done_) return;
  flight_ = kind;
  for (auto& each : attempts_) each.sent_all = false;
  relay_to_the_one_that_may();
}

void dial_plan::sending(std::size_t i) {
  attempts_[i].sent_some = true;
}

void dial_plan::sent(std::size_t i, time_point now) {
  attempt& to = attempts_[i];
  to.sent_some = true;
  to.sent_all = true;
  to.has_all.reset();
  to.since = now;
  to.check_at = now + limits_.first_answer;
}

void dial_plan::acknowledged(std::size_t i, time_point at) {
  attempts_[i].has_all = at;
}

void dial_plan::expired(time_point now, bool all_slow) {
  if (done_) return;
  if (!total_over_ && now >= total_end_) end_total();
  if (!done_) time_out_connecting(now);
  if (!done_) lose_patience(now, all_slow);
}

void dial_plan::time_out_connecting(time_point now) {
  for (std::size_t i = 0; i < attempts_.size() && connects_are_limited(); ++i) {
    const attempt& each = attempts_[i];
    if (each.at != stage::connecting || now < each.since + limits_.attempt_timeout) continue;
    drop(i, dial_result::timed_out);
    if (i == newest_ && may_dial()) dial_next(dial_action::reason::failover, now);
  }
  if (!any_alive()) give_up();
}

void dial_plan::lose_patience(time_point now, bool all_slow) {
  const auto end = patience_ends();
  if (!end || now < std::max(*end, token_retry_)) return;
  attempt& newest = attempts_[newest_];
  const bool silent = newest.has_all || now >= newest.since + limits_.attempt_timeout;
  if (newest.at == stage::connected && !silent) {
    newest.check_at = now + ask_again;
    actions_.push_back({.what = dial_action::kind::check_acknowledged, .candidate = newest_});
    return;
  }
  if (all_slow || !budget_.take()) {
    token_retry_ = now + token_again;
    return;
  }
  needed_token_ = true;
  dial_next(
      newest.at == stage::connecting ? dial_action::reason::hedge : dial_action::reason::replay,
      now);
}

// When the newest attempt has had its time alone.
std::optional<time_point> dial_plan::patience_ends() const {
  if (!may_dial()) return std::nullopt;
  const attempt& newest = attempts_[newest_];
  if (newest.at == stage::connecting) return newest.since + limits_.hedge_after;
  if (newest.at != stage::connected || flight_ != flight::hello || !newest.sent_all)
    return std::nullopt;
  return newest.has_all ? *newest.has_all + limits_.first_answer : newest.check_at;
}

std::optional<time_point> dial_plan::deadline() const {
  if (done_) return std::nullopt;
  auto first = total_over_ ? time_point::max() : total_end_;
  if (const auto end = patience_ends()) first = std::min(first, std::max(*end, token_retry_));
  if (connects_are_limited())
    for (const auto& each : attempts_)
      if (each.at == stage::connecting)
        first = std::min(first, each.since + limits_.attempt_timeout);
  if (first == time_point::max()) return std::nullopt;
  return first;
}

bool dial_plan::may_send(std::size_t i) const {
  return !done_ && attempts_[i].at == stage::connected &&
         (flight_ == flight::partial_hello || flight_ == flight::hello);
}

dial_plan::actions dial_plan::take_actions() {
  return std::exchange(actions_, {});
}

void dial_plan::dial_next(dial_action::reason why, time_point now) {
  const std::size_t next = queue_.front();
  queue_.erase(queue_.begin());
  attempts_[next] = {.at = stage::connecting, .since = now};
  newest_ = next;
  token_retry_ = {};
  actions_.push_back({.what = dial_action::kind::dial, .candidate = next, .why = why});
}

void dial_plan::drop(std::size_t i, std::optional<dial_result> result) {
  attempts_[i].at = stage::over;
  actions_.push_back({.what = dial_action::kind::drop, .candidate = i, .result = result});
}

void dial_plan::relay(std::size_t i) {
  for (std::size_t other = 0; other < attempts_.size(); ++other) {
    if (other == i) continue;
    if (attempts_[other].at == stage::connecting) drop(other, dial_result::abandoned);
    if (attempts_[other].at == stage::connected) drop(other, std::nullopt);
  }
  if (!needed_token_) budget_.give_back_a_tenth();
  done_ = true;
  actions_.push_back({.what = dial_action::kind::relay, .candidate = i});
}

// A flight that must not be sent twice goes to the one that has the beginning of it, or to any that
// has nothing. While two have its ClientHello, the rest of it waits for the first answer.
void dial_plan::relay_to_the_one_that_may() {
  if (flight_ != flight::other) return;
  std::optional<std::size_t> first;
  std::optional<std::size_t> begun;
  for (std::size_t i = 0; i < attempts_.size(); ++i) {
    if (attempts_[i].at != stage::connected) continue;
    if (!first) first = i;
    if (!attempts_[i].sent_some) continue;
    if (begun) return;
    begun = i;
  }
  if (const auto chosen = begun ? begun : first) relay(*chosen);
}

// A client whose ClientHello somebody has, but who may still be served by another, goes on waiting:
// the first to answer wins, and whoever has it may yet be found hung.
void dial_plan::end_total() {
  total_over_ = true;
  std::optional<std::size_t> chosen;
  std::size_t have_flight = 0;
  bool others = !queue_.empty();
  for (std::size_t i = 0; i < attempts_.size(); ++i) {
    others = others || attempts_[i].at == stage::connecting;
    if (attempts_[i].at != stage::connected) continue;
    if (!chosen || (attempts_[i].sent_some && !attempts_[*chosen].sent_some)) chosen = i;
    if (attempts_[i].sent_some) ++have_flight;
  }
  if (have_flight > 1 || (have_flight == 1 && flight_ == flight::hello && others)) return;
  for (std::size_t i = 0; i < attempts_.size(); ++i)
    if (attempts_[i].at == stage::connecting) drop(i, dial_result::timed_out);
  if (chosen) return relay(*chosen);
  give_up();
}

void dial_plan::give_up() {
  done_ = true;
  actions_.push_back({.what = dial_action::kind::give_up});
}

bool dial_plan::any_alive() const {
  return std::any_of(attempts_.begin(), attempts_.end(), [](const attempt& each) {
    return each.at == stage::connecting || each.at == stage::connected;
  });
}

}  // namespace kubelane::proxy
