// What the admin port answers.

#include "proxy/server_impl.hpp"
#include "telemetry/page.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>

namespace kubelane::proxy {
namespace {

using telemetry::admin_response;

constexpr auto lag_window = std::chrono::minutes(1);
constexpr std::size_t remembered_refusals = 64;

constexpr const char* text_plain = "text/plain; charset=utf-8";

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::int64_t unix_now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

admin_response server::impl::answer(std::string_view path) {
  // Within a turn the pool may know of a change that has not been told yet.
  apply_effects();
  // That this code runs is the answer: the loop turns. It says nothing about API servers, or a
  // restart would be asked for when it cannot help.
  if (path == "/livez" || path == "/healthz") return {200, text_plain, "ok\n", {}};
  if (path == "/readyz") return readiness();
  if (path == "/status") return status_document();
  if (path == "/metrics") return metrics_text();
  if (path == "/events") return {200, "application/json", events_document(events), {}};
  if (path == "/") return page();
  return {404, text_plain, "not found; / links what is\n", {}};
}

bool server::impl::ready(const pool_status& status) const {
  return !stopping && awaited_ports.empty() && status.usable;
}

admin_response server::impl::readiness() {
  const auto status = pool.status(reactor.now());
  const bool good = ready(status);
  const auto ports = awaited_ports.empty() ? "" : "[-]listen " + describe_wait() + '\n';
  return {good ? 200U : 503U, text_plain, ports + readiness_text(status, good), {}};
}

/// Moves by whole steps of the wall clock only, so that one moment has one time.
std::int64_t server::impl::unix_ms_of(time_point at) {
  constexpr std::int64_t step = 50;
  const auto steady = std::chrono::floor<milliseconds>(at.time_since_epoch()).count();
  const auto offset = unix_now_ms() - steady;
  if (std::abs(offset - wall_offset_ms) > step) wall_offset_ms = offset;
  return steady + wall_offset_ms;
}

admin_response server::impl::page() const {
  const auto made = telemetry::status_page();
  return {200, "text/html; charset=utf-8", std::string(made.html), std::string(made.policy)};
}

admin_response server::impl::status_document() {
  proxy::status_document document;
  document.version = KUBELANE_VERSION;
  document.node = host_name();
  document.pid = static_cast<int>(::getpid());
  document.started_ms = started_ms;
  document.config_path = options.config_path;
  document.pool = pool.status(reactor.now());
  document.ready = ready(document.pool);
  if (settings.cluster.etcd == config::etcd_topology::stacked)
    document.beside.quorum = quorum_of(document.pool);
  document.beside.stopping = stopping;
  document.beside.observing = settings.failover.mode == config::failover_mode::observe;
  document.beside.fallback = fallback;
  if (!awaited_ports.empty()) document.beside.waiting = describe_wait();
  document.connections = relays.connections();
  document.notes = &notes;
  document.events = &events;
  document.steady_now = health::clock::now();
  document.unix_now_ms = unix_ms_of(document.steady_now);
  return {200, "application/json", to_json(document), {}};
}

bool server::impl::may_ask_metrics(const asio::ip::address& client) {
  const auto& allowed = settings.metrics_allow;
  const auto takes = [&](const net::subnet& range) { return range.contains(client); };
  if (allowed.empty() || std::any_of(allowed.begin(), allowed.end(), takes)) return true;
  if (refused_metrics.size() < remembered_refusals && refused_metrics.insert(client).second)
    log.warn("metrics refused: the client is not in metrics.allow",
             {{"client", client.to_string()}});
  return false;
}

admin_response server::impl::metrics_text() {
  const auto status = pool.status(reactor.now());
  std::map<std::string_view, std::size_t> connections;
  for (const auto& one : status.upstreams) {
    // An address that changed under its name: the new one comes first, the old one's still leave.
    const auto [total, is_first] = connections.try_emplace(one.name, 0);
    if (is_first) metrics.state(one.name, health::to_string(one.state));
    metrics.connections(one.name, total->second += one.connections);
    const auto& seen = pool.activity_of(one.id);
    metrics.bytes_total(one.name, seen.bytes_up, seen.bytes_down);
  }
  metrics.ready(ready(status));
  metrics.panic_mode(status.panic);
  metrics.resets_withheld(status.resets_withheld);
  if (settings.cluster.etcd == config::etcd_topology::stacked) {
    const auto view = quorum_of(status);
    metrics.quorum(view.members, view.majority, view.ready, view.spare);
  } else {
    metrics.no_quorum();
  }
  const std::chrono::duration<double> lag =
      reactor.worst_lag_since(health::clock::now() - lag_window);
  metrics.loop_lag(lag.count());
  metrics.log_lines_dropped_total(log.dropped());
  return {200, "text/plain; version=0.0.4; charset=utf-8", metrics.render(), {}};
}

}  // namespace kubelane::proxy
