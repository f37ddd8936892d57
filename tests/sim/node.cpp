#include "node.hpp"

#include <algorithm>

namespace kubelane::sim {

using namespace std::chrono_literals;

namespace {

constexpr milliseconds one_step = 10ms;

std::vector<proxy::wanted_upstream> wanted(std::size_t count) {
  std::vector<proxy::wanted_upstream> all;
  for (std::size_t i = 1; i <= count; ++i)
    all.push_back({.name = "cp" + std::to_string(i),
                   .address = net::parse_endpoint("10.0.0." + std::to_string(i), 6443),
                   .zone = "",
                   .member = health::membership::configured});
  return all;
}

}  // namespace

node::node(world& in, const config::config& settings)
    : in_(in),
      settings_(settings),
      pool_(settings, [&in] { return in.random01(); }),
      next_tick_(in.now),
      next_fresh_(in.now) {
  pool_.reconcile(wanted(in.servers.size()), in.now);
  for (const auto& each : pool_.status(in.now).upstreams) {
    servers_[each.id] = ids_.size();
    probers_.emplace_back(ids_.size(), settings.health.timeout);
    next_probe_.push_back(in.now);
    fresh_.push_back(false);
    ids_.push_back(each.id);
  }
}

void node::connect_clients(int count, milliseconds every, milliseconds processing) {
  for (int i = 0; i < count; ++i) {
    client who;
    who.every = every;
    who.processing = processing;
    who.next_request = in_.now + in_.random_in(0ms, every);
    connect(who);
    clients_.push_back(who);
  }
}

void node::refuse_a_client(std::size_t server) {
  pool_.report_dial(ids_[server], health::dial_result::refused, in_.now);
}

void node::run_until(time_point end) {
  while (in_.now < end) step();
}

health::state node::state_of(std::size_t server) const {
  return status().upstreams[server].state;
}

std::size_t node::clients_on(std::size_t server) const {
  return static_cast<std::size_t>(std::count_if(
      clients_.begin(), clients_.end(), [&](const client& who) { return who.server == server; }));
}

void node::step() {
  in_.now += one_step;
  if (stalled) {
    lag_ += one_step;
    return;
  }
  for (std::size_t server = 0; server < ids_.size(); ++server) step_probe(server);
  for (auto& who : clients_) who.server ? step_client(who) : redial(who);
  if (fresh_every > 0ms && in_.now >= next_fresh_) {
    next_fresh_ = in_.now + fresh_every;
    proxy::upstream_id id{};
    const auto took = dial(id);
    fresh_failed += took ? 0 : 1;
    fresh_slowest = std::max(fresh_slowest, took.value_or(0ms));
  }
  if (in_.now >= next_tick_) {
    pool_.tick(in_.now);
    next_tick_ = in_.now + 100ms;
  }
  apply_effects();
  for (auto& who : clients_) step_closing(who);
  lag_ = 0ms;
}

void node::step_probe(std::size_t server) {
  auto& it = probers_[server];
  const auto id = ids_[server];
  // The kernel's word first: after a stall, time-outs are what the loop sees before it reads.
  if (it.finds_host_silent(in_)) pool_.report_host_silent(id, "no acknowledgement", in_.now);
  if (it.finds_connection_ended(in_)) next_probe_[server] = in_.now;
  if (auto report = it.step(in_)) {
    report->loop_lag = lag_;
    next_probe_[server] = in_.now + pool_.report_probe(id, *report, in_.now);
  }
  if (const auto late = it.late_answer(in_)) {
    pool_.activity_of(id).last_heard = in_.now;
    if (late->result != health::outcome::passed) pool_.report_late_answer(id, *late, in_.now);
  }
  if (it.in_flight() || in_.now < next_probe_[server]) return;
  ++probes;
  it.start(in_, fresh_[server] ? prober::on::new_connection : prober::on::any_connection);
  fresh_[server] = false;
}

void node::step_client(client& who) {
  auto& at = in_.servers[*who.server];
  auto& seen = pool_.activity_of(who.id);
  if (at.program == process::gone && in_.arrives(at)) return drop(who);
  if (who.waiting && who.waiting->step(in_, at)) {
    who.waiting.reset();
    who.next_request = in_.now + who.every;
    who.last_byte = seen.last_heard = in_.now;
    seen.unanswered_since = {};
    seen.bytes_down += 100;
  }
  if (who.waiting || who.every == 0ms || in_.now < who.next_request) return;
  who.waiting.emplace(in_.now, who.processing);
  who.last_byte = in_.now;
  seen.bytes_up += 100;
  if (seen.unanswered_since == time_point{}) seen.unanswered_since = in_.now;
}

void node::step_closing(client& who) {
  if (!who.leaves || in_.now < *who.leaves) return;
  if (who.latest && in_.now < *who.latest && in_.now - who.last_byte < 250ms) return;
  const auto& at = in_.servers[*who.server];
  const bool served = at.program == process::running && at.link;
  closings.push_back({in_.now, *who.server, who.cause, served});
  drop(who);
}

// The connection ends; its client comes back at once, and every second if that fails.
void node::drop(client& who) {
  pool_.closed(who.id, in_.now);
  who.server.reset();
  who.waiting.reset();
  who.leaves.reset();
  who.latest.reset();
  connect(who);
}

void node::redial(client& who) {
  if (in_.now >= who.next_dial) connect(who);
}

void node::connect(client& who) {
  who.next_dial = in_.now + 1s;
  if (!dial(who.id)) return;
  who.server = server_of(who.id);
  pool_.opened(who.id);
}

std::optional<milliseconds> node::dial(proxy::upstream_id& id) {
  milliseconds took{0};
  for (const auto& candidate : pool_.candidates(in_.now)) {
    const auto& at = in_.servers[server_of(candidate.id)];
    if (took > settings_.dial.total_timeout) break;
    if (!in_.arrives(at)) {
      pool_.report_dial(candidate.id, health::dial_result::timed_out, in_.now);
      took += settings_.dial.hedge_after;
    } else if (!at.accepts || at.program == process::gone) {
      pool_.report_dial(candidate.id, health::dial_result::refused, in_.now);
    } else if (at.program == process::frozen) {
      took += settings_.dial.first_answer;
    } else {
      pool_.report_dial(candidate.id, health::dial_result::connected, in_.now);
      id = candidate.id;
      return took;
    }
  }
  return std::nullopt;
}

void node::apply_effects() {
  for (const auto& each : pool_.take_effects()) apply(each);
}

void node::apply(const proxy::effect& what) {
  if (const auto* ask = std::get_if<proxy::probe_now>(&what)) {
    next_probe_[server_of(ask->id)] = in_.now;
    fresh_[server_of(ask->id)] = ask->fresh;
  } else if (const auto* change = std::get_if<proxy::upstream_changed>(&what)) {
    changes.push_back(*change);
  } else if (const auto* reset = std::get_if<proxy::reset_connections>(&what)) {
    ++reset_orders;
    schedule(reset->id, reset->cause, reset->spread, 0ms);
  } else if (const auto* drain = std::get_if<proxy::drain_connections>(&what)) {
    ++drain_orders;
    schedule(drain->id, drain->cause, drain->spread, drain->busy);
  } else if (const auto* off = std::get_if<proxy::call_off>(&what)) {
    for (auto& who : clients_)
      if (who.id == off->id) who.leaves.reset();
  } else if (std::holds_alternative<proxy::would_close>(what)) {
    ++would_close_orders;
  }
}

void node::schedule(proxy::upstream_id id, const std::string& cause, milliseconds spread,
                    milliseconds busy) {
  for (auto& who : clients_) {
    if (!who.server || who.id != id || who.leaves) continue;
    who.leaves = in_.now + in_.random_in(0ms, spread);
    if (busy > 0ms) who.latest = *who.leaves + busy;
    who.cause = cause;
  }
}

}  // namespace kubelane::sim
