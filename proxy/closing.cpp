#include "proxy/closing.hpp"

#include <algorithm>

namespace kubelane::proxy {

using namespace std::chrono_literals;

namespace {

// An election turns all servers red, staggered: what the others say before this says nothing.
constexpr milliseconds election = 2s;

milliseconds drain_time(reason why, const config::drain& drain) {
  switch (why) {
    case reason::etcd:
      return drain.etcd;
    case reason::other:
      return drain.other;
    case reason::shutdown:
    case reason::refused:
      return drain.shutdown;
    case reason::removed:
      return drain.removed;
    case reason::none:
    case reason::hung:
    case reason::dead:
      return 0ms;
  }
  return 0ms;
}

time_point due_of(const grounds& of, const closing_rules& rules) {
  if (of.why == reason::hung) return of.evidence + rules.hung_after;
  if (of.why == reason::dead) return of.evidence;
  const auto due = of.first + drain_time(of.why, rules.drain);
  return of.why == reason::etcd ? std::max(due, closing::etcd_threshold(of.first)) : due;
}

closing::order order_of(reason why, const closing_rules& rules) {
  if (why == reason::hung) return {why, rules.hung_spread, 0ms};
  if (why == reason::dead) return {why, 0ms, 0ms};
  return {why, drain_time(why, rules.drain) / 2, why == reason::etcd ? 0ms : rules.drain.busy};
}

bool leaves_by_itself(reason why) {
  return why == reason::shutdown || why == reason::refused;
}

}  // namespace

const char* to_string(reason value) noexcept {
  switch (value) {
    case reason::none:
      return "none";
    case reason::hung:
      return "hung";
    case reason::dead:
      return "dead";
    case reason::etcd:
      return "etcd";
    case reason::other:
      return "other";
    case reason::shutdown:
      return "shutdown";
    case reason::refused:
      return "refused";
    case reason::removed:
      return "removed";
  }
  return "?";
}

time_point closing::etcd_threshold(time_point first) {
  return first + election;
}

// Returns whether what was ordered is void.
bool closing::begin(const grounds& next, const closing_rules& rules) {
  const auto before = grounds_.why;
  if (leaves_by_itself(before) && leaves_by_itself(next.why) && grounds_.first == next.first) {
    grounds_.why = next.why;  // it said that it stops, and stops: its time runs on
    return false;
  }
  const bool stays = next.why != reason::none && !(is_reset(before) && !is_reset(next.why));
  const bool call_off = ordered_.has_value() && !stays;
  grounds_ = next;
  due_ = due_of(next, rules);
  withheld_ = others_asked_ = false;
  restarted_.reset();
  ordered_.reset();
  return call_off;
}

closing::advice closing::review(const grounds& now_known, const situation& seen,
                                const closing_rules& rules, time_point now) {
  advice result;
  if (now_known.why != grounds_.why) result.call_off = begin(now_known, rules);
  if (grounds_.why == reason::none) return result;
  if (ordered_) repeat(seen, rules, now);
  if (ordered_) return result;
  if (grounds_.why == reason::etcd && !others_asked_ && now >= etcd_threshold(grounds_.first))
    result.ask_others = others_asked_ = true;
  if (now < due_) return result;

  const bool soft = grounds_.why != reason::dead;
  if (!seen.other || (seen.panic && soft)) {
    if (now >= due_ + rules.grace) withheld_ = true;
    return result;
  }
  if (is_reset(grounds_.why)) {
    withheld_ = false;
    if (seen.confirmations < (seen.other->steady ? 1 : rules.fall)) return result;
    if (last_reset_ && now - *last_reset_ < rules.hold_down) return result;
  } else if (restarts(seen, rules, now)) {
    result.ask_it = grounds_.why != reason::removed;
    return result;
  }
  if (seen.connections == 0) return result;
  ordered_ = now;
  last_order_ = order_of(grounds_.why, rules);
  if (is_reset(grounds_.why)) last_reset_ = now;
  result.close = last_order_;
  return result;
}

// A drain for which nobody could vouch in time waits its full time again, counted from now.
bool closing::restarts(const situation& seen, const closing_rules& rules, time_point now) {
  const bool wave = grounds_.why == reason::etcd || grounds_.why == reason::other;
  if (!withheld_ && (seen.other->steady || !wave)) return false;
  withheld_ = false;
  restarted_ = now;
  due_ = now + drain_time(grounds_.why, rules.drain);
  return true;
}

// Connections that came, or were left, after all was done: the same again, later.
void closing::repeat(const situation& seen, const closing_rules& rules, time_point now) {
  const auto done = *ordered_ + last_order_.spread + last_order_.busy + 1s;
  if (rules.observe || seen.connections == 0) return;
  if (now < std::max(done, *ordered_ + rules.hold_down)) return;
  ordered_.reset();
}

std::optional<milliseconds> closing::leaving_in(time_point now) const {
  if (grounds_.why == reason::none || withheld_) return std::nullopt;
  const auto last = ordered_ ? *ordered_ + last_order_.spread : due_;
  if (ordered_ && now > last) return std::nullopt;
  return std::chrono::ceil<milliseconds>(std::max(last, now) - now);
}

}  // namespace kubelane::proxy
