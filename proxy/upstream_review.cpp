// What follows from the evidence: what is told, who is asked, which connections leave.

#include "proxy/upstream_pool_impl.hpp"

#include <algorithm>
#include <utility>

namespace kubelane::proxy {

using health::state;

// One line per change of state, and one per matter while the state stays.
void upstream_pool::impl::tell(pool_member& it, time_point now) {
  const auto current = it.tracker.current();
  const auto matter = 1u << static_cast<unsigned>(it.tracker.about());
  if (current == it.shown && (it.told & matter)) return;
  const bool convicted = current == state::hung || current == state::dead;
  const bool was_convicted = it.shown == state::hung || it.shown == state::dead;
  if (current != it.shown) {
    if (it.shown == state::ready) it.left_ready = now;
    if (current == state::ready) it.left_ready.reset();
    it.told = 0;
  }
  it.told |= matter;
  const auto from = std::exchange(it.shown, current);
  effects.push_back(
      upstream_changed{it.id, it.want.name, from, current, it.tracker.cause(now), now});
  if (!convicted || was_convicted) return;
  ask_others(it, now);
}

void upstream_pool::impl::settle(time_point now) {
  using company = health::tracker::company;
  for (const auto& each : all) {
    const auto others = std::any_of(all.begin(), all.end(), [&](const auto& other) {
      return other->id != each->id && tier_of(*other) == 1;
    });
    each->tracker.settle(others ? company::others_in_first_tier : company::none_in_first_tier, now);
  }
}

void upstream_pool::impl::review(time_point now) {
  settle(now);
  for (const auto& each : all)
    if (!each->removed) tell(*each, now);
  for (const auto& each : all) watch_silence(*each);
  if (behind || is_late(now)) return;
  const bool panic = is_panic(all);
  for (const auto& each : all) consider(*each, panic, now);
}

// Finds the answer of another upstream that this one's silence is measured against, and asks this
// one again as soon as it is there: a network that was dark for all may just be back.
void upstream_pool::impl::watch_silence(pool_member& it) {
  const auto after = it.removed ? std::nullopt : silence_of(it, all);
  if (!after) return it.other.reset();
  if (!keep_witness(it, *after)) return;
  // While a verdict is still open, the usual pace is soon enough, unless clients wait: three
  // time-outs in a hurry would be a verdict on a server that is paused for two seconds.
  const auto current = it.tracker.current();
  const bool hurry = it.tracker.suspected() || current == state::hung || current == state::dead;
  if (hurry && it.tracker.failing() && it.last_failed_start < it.other->finished)
    ask(it, it.other->finished);
}

// The witness it has, if that one still vouches, or another; false if there is none.
bool upstream_pool::impl::keep_witness(pool_member& it, time_point after) {
  const auto* known = it.other ? find(it.other_id) : nullptr;
  if (known && !known->removed && known->tracker.vouches() && it.other->started > after)
    return true;
  it.other.reset();
  const auto found = find_witness(it, after, *it.tracker.silence() - together, all);
  if (!found) return false;
  it.other = found->what;
  it.other_id = found->by;
  it.confirmations = 0;
  return true;
}

std::optional<witness> upstream_pool::impl::witness_for(const pool_member& it, const grounds& why,
                                                        time_point now) {
  if (why.why == reason::none) return std::nullopt;
  if (is_reset(why.why)) return it.other;
  if (why.why == reason::etcd) {
    const auto found = find_etcd_witness(it, why.first, all);
    if (found.ask_at && now >= *found.ask_at && !found.what) ask_others(it, *found.ask_at);
    return found.what;
  }
  const auto found = find_witness(it, why.evidence, it.closing.steady_since(), all);
  return found ? std::optional(found->what) : std::nullopt;
}

void upstream_pool::impl::consider(pool_member& it, bool panic, time_point now) {
  const auto why = grounds_of(it);
  const closing::situation seen{.other = witness_for(it, why, now),
                                .confirmations = it.confirmations,
                                .panic = panic,
                                .connections = it.connections};
  const auto advice = it.closing.review(why, seen, rules, now);
  if (advice.call_off && !rules.observe) effects.push_back(call_off{it.id});
  if (advice.ask_it) ask(it, now);
  if (advice.ask_others) ask_others(it, now);
  if (advice.close) close(it, *advice.close);
}

void upstream_pool::impl::close(const pool_member& it, const closing::order& how) {
  const std::string cause = to_string(how.why);
  if (rules.observe)
    effects.push_back(would_close{it.id, cause, it.connections});
  else if (is_reset(how.why))
    effects.push_back(reset_connections{it.id, cause, how.spread});
  else
    effects.push_back(drain_connections{it.id, cause, how.spread, how.busy});
}

}  // namespace kubelane::proxy
