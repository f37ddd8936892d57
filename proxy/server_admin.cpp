// What the admin port answers.

#include "proxy/server_impl.hpp"

namespace kubelane::proxy {
namespace {

using telemetry::admin_response;

constexpr auto lag_window = std::chrono::minutes(1);

constexpr const char* index_page =
    "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>kubelane</title>\n"
    "<h1>kubelane</h1>\n<ul>\n"
    "<li><a href=\"/status\">/status</a>: upstreams, quorum, last state changes, as JSON\n"
    "<li><a href=\"/readyz\">/readyz</a>: 200 while an API server is usable\n"
    "<li><a href=\"/livez\">/livez</a>, <a href=\"/healthz\">/healthz</a>: 200 while this process "
    "works\n"
    "<li><a href=\"/metrics\">/metrics</a>: Prometheus metrics\n</ul>\n</html>\n";

constexpr const char* text_plain = "text/plain; charset=utf-8";

std::int64_t unix_now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

}  // namespace

admin_response server::impl::answer(std::string_view path) {
  // That this code runs is the answer: the loop turns. It says nothing about API servers, or a
  // restart would be asked for when it cannot help.
  if (path == "/livez" || path == "/healthz") return {200, text_plain, "ok\n"};
  if (path == "/readyz") return readiness();
  if (path == "/status") return status_document();
  if (path == "/metrics") return metrics_text();
  if (path == "/") return {200, "text/html; charset=utf-8", index_page};
  return {404, text_plain, "not found; / lists what is\n"};
}

bool server::impl::ready() const {
  return !stopping && awaited_ports.empty() && pool.status(reactor.now()).usable;
}

admin_response server::impl::readiness() {
  const bool good = ready();
  const auto ports = awaited_ports.empty() ? "" : "[-]listen " + describe_wait() + '\n';
  return {good ? 200U : 503U, text_plain, ports + readiness_text(pool.status(reactor.now()), good)};
}

admin_response server::impl::status_document() {
  proxy::status_document document;
  document.version = KUBELANE_VERSION;
  document.pool = pool.status(reactor.now());
  document.ready = !stopping && awaited_ports.empty() && document.pool.usable;
  if (settings.cluster.etcd == config::etcd_topology::stacked)
    document.quorum = quorum_of(document.pool);
  document.connections = relays.connections();
  document.events = &events;
  document.steady_now = health::clock::now();
  document.unix_now_ms = unix_now_ms();
  return {200, "application/json", to_json(document)};
}

admin_response server::impl::metrics_text() {
  const auto status = pool.status(reactor.now());
  for (const auto& one : status.upstreams) {
    metrics.state(one.name, health::to_string(one.state));
    metrics.connections(one.name, one.connections);
    const auto& seen = pool.activity_of(one.id);
    metrics.bytes_total(one.name, seen.bytes_up, seen.bytes_down);
  }
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
  return {200, "text/plain; version=0.0.4; charset=utf-8", metrics.render()};
}

}  // namespace kubelane::proxy
