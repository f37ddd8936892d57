// Events become actions, log lines and metrics here, and nowhere else.

#include "proxy/server_impl.hpp"

#include <unistd.h>

namespace kubelane::proxy {
namespace {

std::int64_t unix_ms(std::chrono::system_clock::time_point at) {
  return std::chrono::duration_cast<milliseconds>(at.time_since_epoch()).count();
}

bool is_good(health::state state) {
  return state == health::state::ready || state == health::state::unknown;
}

std::string in_ms(milliseconds duration) {
  return std::to_string(duration.count()) + "ms";
}

}  // namespace

void server::impl::apply_effects() {
  // Applying one may bring forth others: a reset closes connections, a last one frees an upstream.
  while (pool.has_effects())
    for (const auto& one : pool.take_effects())
      std::visit([this](const auto& what) { apply(what); }, one);
}

void server::impl::apply(const probe_now& what) {
  using connection = health::checker::connection;
  checker.probe_now(key_of(what.id), what.fresh ? connection::fresh : connection::any);
}

void server::impl::apply(const upstream_changed& what) {
  const auto now = std::chrono::system_clock::now();
  events.push_back({unix_ms(now), what.name, what.from, what.to, what.cause});
  if (events.size() > remembered_events) events.pop_front();
  log.keep(to_line(events.back()));
  std::vector<telemetry::field> fields = {{"upstream", what.name},
                                          {"from", health::to_string(what.from)}};
  if (!what.cause.empty()) fields.emplace_back("cause", what.cause);
  const auto severity = is_good(what.to) ? telemetry::log_level::info : telemetry::log_level::warn;
  log.write(severity, std::string("upstream ") + health::to_string(what.to), fields);
  if (what.from != what.to) metrics.transition(what.name, health::to_string(what.to));
}

void server::impl::apply(const reset_connections& what) {
  log.warn("resetting connections",
           {{"upstream", name_of(what.id)}, {"cause", what.cause}, {"within", in_ms(what.spread)}});
  relays.apply(what);
}

void server::impl::apply(const drain_connections& what) {
  log.info("draining connections",
           {{"upstream", name_of(what.id)}, {"cause", what.cause}, {"within", in_ms(what.spread)}});
  relays.apply(what);
}

void server::impl::apply(const call_off& what) {
  relays.apply(what);
}

void server::impl::apply(const would_close& what) {
  const auto& name = name_of(what.id);
  metrics.would_reset(name, what.cause, what.connections);
  log.warn("would take connections away", {{"upstream", name},
                                           {"cause", what.cause},
                                           {"connections", std::to_string(what.connections)}});
}

void server::impl::apply(const upstream_gone& what) {
  names.erase(what.id);
  notes.erase(what.id);
  // Another upstream may carry the name already (an address that changed under its name).
  for (const auto& [id, name] : names)
    if (name == what.name) return;
  metrics.forget(what.name);
}

/// What concerns all upstreams together: said once on each edge.
void server::impl::note_whole_state() {
  const auto status = pool.status(reactor.now());
  if (status.panic != panic) {
    panic = status.panic;
    if (panic)
      log.error("no API server looks usable, trying every one");
    else
      log.info("an API server is usable again");
  }
  if (status.resets_withheld != withheld) {
    withheld = status.resets_withheld;
    if (withheld)
      log.warn("connections stay where they are: no other API server has answered since");
  }
}

data_path_observer server::impl::observer() {
  data_path_observer result;
  result.connection_ended = [this](std::optional<upstream_id> id, end_reason reason,
                                   milliseconds duration) {
    const auto upstream = id ? name_of(*id) : std::string("none");
    metrics.connection_ended(upstream, to_string(reason));
    if (log.enabled(telemetry::log_level::debug))
      log.debug(
          "connection ended",
          {{"upstream", upstream}, {"end", to_string(reason)}, {"duration", in_ms(duration)}});
  };
  result.dial_ended = [this](upstream_id id, health::dial_result how,
                             std::chrono::microseconds duration) {
    metrics.dial_ended(name_of(id), health::to_string(how),
                       static_cast<double>(duration.count()) / 1e6);
  };
  result.hedged = [this](const char* kind) { metrics.hedged(kind); };
  result.rejected = [this](const char* reason) { metrics.connection_rejected(reason); };
  result.connection_reset = [this](upstream_id id, const char* cause) {
    metrics.connection_reset(name_of(id), cause);
  };
  result.problem = [this](const std::string& words) { log.warn(words); };
  return result;
}

health::checker_events server::impl::checker_events() {
  health::checker_events result;
  result.on_report = [this](health::checker_key key, const health::probe_report& report) {
    const auto id = id_of(key);
    const std::chrono::duration<double> seconds = report.finished - report.started;
    metrics.probe_ended(name_of(id), health::to_string(report.result), seconds.count());
    note_probe(id, report);
    if (log.enabled(telemetry::log_level::trace))
      log.write(telemetry::log_level::trace, "probe ended",
                {{"upstream", name_of(id)},
                 {"outcome", health::to_string(report.result)},
                 {"detail", report.detail}});
    return pool.report_probe(id, report, health::clock::now());
  };
  result.on_host_silent = [this](health::checker_key key, const std::string& detail) {
    pool.report_host_silent(id_of(key), detail, health::clock::now());
  };
  result.on_heard = [this](health::checker_key key) {
    pool.activity_of(id_of(key)).last_heard = health::clock::now();
  };
  result.on_late_answer = [this](health::checker_key key, const health::probe_report& report) {
    pool.report_late_answer(id_of(key), report, health::clock::now());
  };
  result.on_certificate = [this](health::checker_key key,
                                 std::chrono::system_clock::time_point expiry) {
    metrics.certificate_expiry(name_of(id_of(key)), static_cast<double>(unix_ms(expiry)) / 1000);
    notes[id_of(key)].certificate_expiry_ms = unix_ms(expiry);
  };
  return result;
}

/// For the line that people see; what failed took as long as it was given.
void server::impl::note_probe(upstream_id id, const health::probe_report& report) {
  using health::outcome;
  const bool answered = report.result == outcome::passed || report.result == outcome::not_ready ||
                        report.result == outcome::unauthorized ||
                        report.result == outcome::shutting_down;
  const auto took = report.finished - report.started;
  probe_history::entry entry{unix_now_ms(), std::nullopt};
  if (answered)
    entry.microseconds = static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(took).count());
  notes[id].probes.add(entry);
}

const std::string& server::impl::name_of(upstream_id id) const {
  static const std::string unknown = "unknown";
  const auto found = names.find(id);
  return found == names.end() ? unknown : found->second;
}

void server::impl::on_bug(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log.error("bug: a task ended by an exception", {{"what", error.what()}});
  } catch (...) {
    log.error("bug: a task ended by an exception");
  }
}

}  // namespace kubelane::proxy
