#include "proxy/member.hpp"

#include <algorithm>

namespace kubelane::proxy {

using namespace std::chrono_literals;
using health::matter;
using health::state;

namespace {

int tier_of_state(state value, health::membership member) {
  switch (value) {
    case state::ready:
      return 1;
    case state::unknown:
      return member == health::membership::configured ? 1 : 4;
    case state::slow:
    case state::shutting_down:
      return 2;
    case state::not_ready:
      return 3;
    case state::refused:
    case state::hung:
    case state::dead:
      return 4;
    case state::impostor:
      return 5;
    case state::unresolved:
      return 0;
  }
  return 0;
}

bool can_vouch(const pool_member& it) {
  return !it.removed && it.tracker.vouches();
}

// It was ready within the ten seconds before, or later.
bool was_ready_around(const pool_member& it, time_point first) {
  if (it.removed) return false;
  if (it.tracker.current() == state::ready) return true;
  return it.left_ready && *it.left_ready + together >= first;
}

bool answers_200_since(const pool_member& it, time_point after) {
  return can_vouch(it) && it.tracker.passed_plainly() && it.tracker.last_pass().started >= after;
}

}  // namespace

int tier_of(const pool_member& of) {
  if (of.removed) return 0;
  const auto tier = tier_of_state(of.tracker.current(), of.want.member);
  if (tier == 0 || tier == 5) return tier;
  // A discovered address is a hint until its identity was verified; one that leaves is a last
  // resort.
  const bool hint =
      of.want.member == health::membership::discovered && of.tracker.about() == matter::unverified;
  return hint || of.want.member == health::membership::leaving ? 4 : tier;
}

bool is_panic(const members& all) {
  return std::none_of(all.begin(), all.end(), [](const auto& each) {
    const auto tier = tier_of(*each);
    return tier >= 1 && tier <= 3;
  });
}

grounds grounds_of(const pool_member& of) {
  const auto& tracker = of.tracker;
  if (of.removed) return {reason::removed, *of.removed, *of.removed};
  if (tracker.acquitted()) return {};
  const auto leaving = [](reason why, const std::optional<health::exchange>& first) {
    return first ? grounds{why, first->started, first->finished} : grounds{};
  };
  switch (tracker.current()) {
    case state::hung:
    case state::dead: {
      const auto why = tracker.current() == state::hung ? reason::hung : reason::dead;
      const auto evidence = tracker.silence().value_or(tracker.since());
      return {why, evidence, evidence};
    }
    case state::shutting_down:
      return leaving(reason::shutdown, tracker.first_leaving());
    case state::refused:
      return leaving(reason::refused, tracker.first_leaving());
    case state::not_ready:
      if (tracker.about() == matter::etcd) return leaving(reason::etcd, tracker.first_etcd());
      if (tracker.about() == matter::other) return leaving(reason::other, tracker.first_bad());
      return {};
    case state::unknown:
    case state::ready:
    case state::slow:
    case state::impostor:
    case state::unresolved:
      return {};
  }
  return {};
}

std::optional<time_point> silence_of(const pool_member& of, const members& all) {
  auto after = of.tracker.silence();
  if (!after || !is_reset(grounds_of(of).why)) return after;
  const auto verdict = of.tracker.convicted();
  for (const auto& each : all) {
    const auto other = each->tracker.convicted();
    if (each->id == of.id || other == time_point{}) continue;
    const auto later = std::max(other, verdict);
    if (later - std::min(other, verdict) < together) after = std::max(*after, later);
  }
  return after;
}

std::optional<found_witness> find_witness(const pool_member& of, time_point after,
                                          time_point steady_since, const members& all) {
  std::optional<found_witness> best;
  for (const auto& each : all) {
    if (each->id == of.id || !can_vouch(*each)) continue;
    const auto pass = each->tracker.last_pass();
    if (pass.started <= after || (best && best->what.finished <= pass.finished)) continue;
    const bool steady = each->tracker.last_failure() < steady_since;
    best = {each->id, {pass.started, pass.finished, steady}};
  }
  return best;
}

etcd_witness find_etcd_witness(const pool_member& of, time_point first, const members& all) {
  const auto after = closing::etcd_threshold(first);
  etcd_witness found;
  std::optional<time_point> red_since;
  for (const auto& each : all) {
    if (each->id == of.id) continue;
    if (answers_200_since(*each, after)) {
      const auto pass = each->tracker.last_pass();
      if (!found.what) found.what = witness{pass.started, pass.finished, true};
      found.what->started = std::min(found.what->started, pass.started);
      found.what->finished = std::max(found.what->finished, pass.finished);
      found.what->steady &= each->tracker.last_failure() < of.closing.steady_since();
    } else if (was_ready_around(*each, first)) {
      red_since = std::max(red_since.value_or(first), each->left_ready.value_or(first));
    }
  }
  if (!found.what || !red_since) return found;
  auto settled = *red_since;
  for (const auto& each : all)
    if (each->id != of.id && answers_200_since(*each, after))
      settled = std::max(settled, each->tracker.passing_since());
  found.ask_at = settled + together;
  if (found.what->started < *found.ask_at) found.what.reset();
  return found;
}

}  // namespace kubelane::proxy
