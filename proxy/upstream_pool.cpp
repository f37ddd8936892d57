#include "proxy/upstream_pool.hpp"

#include "proxy/upstream_pool_impl.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kubelane::proxy {

using namespace std::chrono_literals;
using health::outcome;
using health::state;

namespace {

health::tracker_settings tracker_settings_of(const config::config& from) {
  return {.fall = from.health.fall,
          .rise = from.health.rise,
          .interval = config::probe_interval(from),
          .timeout = from.health.timeout,
          .hold_down = from.health.hold_down};
}

closing_rules closing_rules_of(const config::config& from) {
  return {.fall = from.health.fall,
          .hung_after = config::hung_reset_after(from),
          .hung_spread = config::hung_reset_spread(from),
          .hold_down = from.health.hold_down,
          .drain = from.drain,
          .grace = from.health.timeout,
          .observe = from.failover.mode == config::failover_mode::observe};
}

bool is_down(const pool_member& of) {
  switch (of.tracker.current()) {
    case state::refused:
    case state::hung:
    case state::dead:
      return !of.tracker.recovering();
    case state::unresolved:
      return true;
    case state::unknown:
    case state::ready:
    case state::slow:
    case state::shutting_down:
    case state::not_ready:
    case state::impostor:
      return false;
  }
  return false;
}

}  // namespace

upstream_pool::impl::impl(const config::config& with, std::function<double()> random)
    : settings(with),
      rules(closing_rules_of(with)),
      random01(std::move(random)),
      order(with.balance, random01) {}

upstream_pool::upstream_pool(const config::config& settings, std::function<double()> random01)
    : impl_(std::make_unique<impl>(settings, std::move(random01))) {}

upstream_pool::~upstream_pool() = default;

void upstream_pool::configure(const config::config& settings) {
  impl_->settings = settings;
  impl_->rules = closing_rules_of(settings);
  impl_->order.configure(settings.balance);
  for (const auto& each : impl_->all) {
    each->tracker.configure(tracker_settings_of(settings));
    each->suspicion.configure(settings.failover.suspect_after, config::probe_interval(settings));
  }
}

// --- the set -------------------------------------------------------------------------------------

pool_member* upstream_pool::impl::find(upstream_id id) const {
  const auto found =
      std::find_if(all.begin(), all.end(), [id](const auto& each) { return each->id == id; });
  return found == all.end() ? nullptr : found->get();
}

pool_member* upstream_pool::impl::find(const wanted_upstream& like) const {
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) {
    return like.address ? each->want.address == like.address
                        : !each->want.address && each->want.name == like.name;
  });
  return found == all.end() ? nullptr : found->get();
}

pool_member& upstream_pool::impl::add(const wanted_upstream& want) {
  const auto tracking = tracker_settings_of(settings);
  auto tracker =
      want.address ? health::tracker(tracking) : health::tracker::without_address(tracking);
  const health::suspicion suspicion(settings.failover.suspect_after, tracking.interval);
  const auto id = static_cast<upstream_id>(next_id++);
  all.push_back(std::make_unique<pool_member>(id, want, std::move(tracker), suspicion));
  all.back()->shown = all.back()->tracker.current();
  return *all.back();
}

void upstream_pool::impl::update(pool_member& it, const wanted_upstream& want, time_point now) {
  it.want = want;
  if (!it.removed) return;
  // It comes back before its last connection left; nothing was learnt about it meanwhile.
  it.removed.reset();
  if (it.closing.ordered() && !rules.observe) effects.push_back(call_off{it.id});
  it.closing = {};
  it.tracker = health::tracker(tracker_settings_of(settings));
  const auto from = std::exchange(it.shown, state::unknown);
  it.told = 1;
  if (from != state::unknown)
    effects.push_back(
        upstream_changed{it.id, it.want.name, from, state::unknown, "wanted again", now});
}

void upstream_pool::impl::remove(pool_member& it, time_point now) {
  it.removed = now;
  it.other.reset();
  ask_others(it, now);
}

void upstream_pool::reconcile(const std::vector<wanted_upstream>& wanted, time_point now) {
  std::vector<upstream_id> kept;
  for (const auto& want : wanted) {
    auto* it = impl_->find(want);
    if (it && std::find(kept.begin(), kept.end(), it->id) != kept.end()) continue;
    if (it)
      impl_->update(*it, want, now);
    else
      it = &impl_->add(want);
    kept.push_back(it->id);
  }
  const auto place = [&](const std::unique_ptr<pool_member>& it) {
    return std::find(kept.begin(), kept.end(), it->id) - kept.begin();
  };
  const auto missing = static_cast<std::ptrdiff_t>(kept.size());
  for (const auto& each : impl_->all)
    if (place(each) == missing && !each->removed) impl_->remove(*each, now);
  std::stable_sort(impl_->all.begin(), impl_->all.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  impl_->forget_removed(now);
  impl_->review(now);
}

// A dial that began before the removal may still end in a connection.
void upstream_pool::impl::forget_removed(time_point now) {
  std::erase_if(all, [&](const auto& each) {
    if (!each->removed || each->connections > 0) return false;
    if (each->want.address && now - *each->removed < settings.dial.total_timeout) return false;
    effects.push_back(upstream_gone{each->id, each->want.name});
    return true;
  });
}

// --- evidence ------------------------------------------------------------------------------------

void upstream_pool::impl::ask(pool_member& it) {
  request_of(it);
}

// Once is enough: as long as its probes begin too early, report_probe asks again.
void upstream_pool::impl::ask(pool_member& it, time_point from) {
  if (it.ask_from >= from) return;
  it.ask_from = from;
  request_of(it);
}

void upstream_pool::impl::ask_fresh(const pool_member& it) {
  request_of(it).fresh = true;
}

probe_now& upstream_pool::impl::request_of(const pool_member& it) {
  for (auto& each : effects)
    if (auto* request = std::get_if<probe_now>(&each); request && request->id == it.id)
      return *request;
  return std::get<probe_now>(effects.emplace_back(probe_now{.id = it.id}));
}

// Those that fail too are asked again soon anyway; in step with each other they would count one
// cached answer three times.
void upstream_pool::impl::ask_others(const pool_member& than, time_point after) {
  for (const auto& each : all) {
    if (each->id == than.id || each->removed || !each->want.address) continue;
    if (!each->tracker.failing()) ask(*each, after + time_point::duration(1));
  }
}

void upstream_pool::impl::learn(pool_member& it, const health::probe_report& report,
                                health::tracker::effect what) {
  const bool passed = what == health::tracker::effect::passed;
  if (passed) {
    it.suspicion.answered_well(report.started, it.act.bytes_up);
  } else {
    it.suspicion.confirmed();
  }
  const bool answered =
      passed || report.result == outcome::not_ready || report.result == outcome::shutting_down;
  if (answered)
    it.probe =
        std::chrono::duration_cast<std::chrono::microseconds>(report.finished - report.started);
  if (report.result != outcome::timed_out && report.result != outcome::host_silent) return;
  it.last_failed_start = report.started;
  if (it.other && report.started >= it.other->finished) ++it.confirmations;
}

milliseconds upstream_pool::report_probe(upstream_id id, const health::probe_report& report,
                                         time_point now) {
  auto* it = impl_->find(id);
  if (!it || it->removed) return config::probe_interval(impl_->settings);
  it->tracker.heard(it->act.last_heard);
  const auto what = it->tracker.record(report, now);
  if (what == health::tracker::effect::discarded) return 0ms;
  impl_->learn(*it, report, what);
  if (what == health::tracker::effect::first_failure)
    impl_->ask_others(*it, it->tracker.silence().value_or(report.started));
  impl_->review(now);
  if (report.started < it->ask_from) return 0ms;
  const auto leaving_in = it->connections > 0 ? it->closing.leaving_in(now) : std::nullopt;
  return it->tracker.next_delay(leaving_in, impl_->random01(), now);
}

void upstream_pool::report_late_answer(upstream_id id, const health::probe_report& report,
                                       time_point now) {
  auto* it = impl_->find(id);
  if (!it || it->removed) return;
  it->tracker.answered_late(report, now);
  impl_->review(now);
}

void upstream_pool::report_dial(upstream_id id, health::dial_result result, time_point now) {
  auto* it = impl_->find(id);
  if (!it || it->removed) return;
  switch (result) {
    case health::dial_result::refused:
      if (it->tracker.current() != state::refused) impl_->ask_fresh(*it);
      if (it->tracker.dial_refused(now)) impl_->ask_others(*it, now);
      break;
    case health::dial_result::host_silent:
      return report_host_silent(id, "no route to host", now);
    case health::dial_result::timed_out:
    case health::dial_result::lost:
      if (!it->tracker.doubtful() && tier_of(*it) < 4) impl_->ask(*it);
      it->tracker.dial_failed();
      break;
    case health::dial_result::connected:  // nothing new, most of the time, and often
      if (it->tracker.current() == state::refused && !it->tracker.recovering())
        impl_->ask_fresh(*it);
      return;
    case health::dial_result::local_trouble:
    case health::dial_result::abandoned:
      return;
  }
  impl_->review(now);
}

void upstream_pool::report_host_silent(upstream_id id, const std::string& detail, time_point now) {
  auto* it = impl_->find(id);
  if (!it || it->removed) return;
  it->tracker.heard(it->act.last_heard);
  if (it->tracker.host_silent(detail, now))
    impl_->ask_others(*it, it->tracker.silence().value_or(now));
  impl_->review(now);
}

activity& upstream_pool::activity_of(upstream_id id) {
  auto* it = impl_->find(id);
  assert(it);
  return it ? it->act : impl_->stray;
}

void upstream_pool::opened(upstream_id id) {
  auto* it = impl_->find(id);
  assert(it);
  if (!it) return;
  ++it->connections;
}

void upstream_pool::closed(upstream_id id, time_point now) {
  auto* it = impl_->find(id);
  assert(it && it->connections > 0);
  if (!it || it->connections == 0) return;
  --it->connections;
  if (it->connections == 0) impl_->forget_removed(now);
}

void upstream_pool::forget_unanswered(upstream_id id) {
  if (auto* it = impl_->find(id)) it->act.unanswered_since = {};
}

void upstream_pool::tick(time_point now) {
  impl_->behind = impl_->is_late(now) && !impl_->behind;
  impl_->last_tick = now;
  for (const auto& each : impl_->all) {
    if (each->removed || !each->want.address) continue;
    const auto was = each->tracker.current();
    each->tracker.heard(each->act.last_heard);
    if (each->tracker.current() != was) impl_->ask(*each);
    if (!impl_->behind) impl_->suspect(*each, now);
  }
  impl_->review(now);
  impl_->forget_removed(now);
}

void upstream_pool::impl::suspect(pool_member& it, time_point now) {
  if (it.tracker.suspected()) return;
  // Bytes that a probe's witness heard count as well: the data path does not know of them.
  auto waiting_since = it.act.unanswered_since;
  if (waiting_since != time_point{}) waiting_since = std::max(waiting_since, it.act.last_heard);
  const auto arose = it.suspicion.raise(waiting_since, it.act.bytes_up, now);
  if (!arose) return;
  it.tracker.suspect(*arose);
  ask(it);
}

bool upstream_pool::impl::is_late(time_point now) const {
  return last_tick != time_point{} && now - last_tick > 500ms;
}

std::vector<effect> upstream_pool::take_effects() {
  return std::exchange(impl_->effects, {});
}

[[gnu::hot]] bool upstream_pool::has_effects() const noexcept {
  return !impl_->effects.empty();
}

// --- what the data path and people see -----------------------------------------------------------

choice upstream_pool::impl::choice_of(const pool_member& it, time_point now) const {
  choice made;
  made.tier = tier_of(it);
  made.doubtful = made.tier == 4 ? !it.tracker.recovering() : it.tracker.doubtful();
  made.same_zone = !settings.zone.empty() && it.want.zone == settings.zone;
  made.load = it.connections;
  if (const auto risen = it.tracker.risen(); risen && settings.health.slow_start > 0ms) {
    const auto progress = std::chrono::duration<double>(now - *risen) /
                          std::chrono::duration<double>(settings.health.slow_start);
    made.share = std::clamp(progress, 0.1, 1.0);
  }
  return made;
}

std::vector<candidate> upstream_pool::candidates(time_point now) {
  auto& choices = impl_->choices;
  auto& chosen = impl_->chosen;
  choices.clear();
  chosen.clear();
  for (const auto& each : impl_->all) {
    if (tier_of(*each) == 0) continue;
    choices.push_back(impl_->choice_of(*each, now));
    chosen.push_back(each.get());
  }
  std::vector<candidate> result;
  result.reserve(chosen.size());
  for (const auto index : impl_->order.order(choices))
    result.push_back({chosen[index]->id, *chosen[index]->want.address});
  return result;
}

upstream_status upstream_pool::impl::status_of(const pool_member& it, time_point now) const {
  return {.id = it.id,
          .name = it.want.name,
          .address = it.want.address,
          .zone = it.want.zone,
          .member = it.want.member,
          .removed = it.removed.has_value(),
          .state = it.tracker.current(),
          .cause = it.tracker.cause(now),
          .since = it.tracker.since(),
          .doubtful = it.tracker.doubtful(),
          .tier = tier_of(it),
          .connections = it.connections,
          .probe = it.probe,
          .drained = it.closing.ordered()};
}

pool_status upstream_pool::status(time_point now) const {
  pool_status result{.upstreams = {},
                     .usable = false,
                     .panic = is_panic(impl_->all),
                     .resets_withheld = false,
                     .all_down = true};
  for (const auto& each : impl_->all) {
    const auto tier = tier_of(*each);
    result.upstreams.push_back(impl_->status_of(*each, now));
    result.usable |= tier >= 1 && tier <= 3 && each->tracker.answered() &&
                     each->tracker.current() != state::unknown;
    result.resets_withheld |= each->closing.withheld() && each->connections > 0;
    result.all_down &= each->removed.has_value() || is_down(*each);
  }
  return result;
}

}  // namespace kubelane::proxy
