#include "telemetry/metrics.hpp"

#include "telemetry/descriptor_count.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/process.hpp"

#include <algorithm>
#include <array>

namespace kubelane::telemetry {
namespace {

constexpr std::array states = {"unknown", "ready", "slow", "shutting_down", "not_ready",
                               "refused", "hung",  "dead", "impostor",      "unresolved"};

void raise_to(double& counter, double total) {
  counter = std::max(counter, total);
}

}  // namespace

struct metrics::families {
  static constexpr auto counter = values::type::counter;
  static constexpr auto gauge = values::type::gauge;

  exposition all;
  descriptor_count descriptors;

  values state{all,
               gauge,
               {"kubelane_upstream_state",
                "1 for the state an upstream is in, 0 for the others.",
                {"state", "upstream"}}};
  values connections{
      all,
      gauge,
      {"kubelane_upstream_connections", "Connections relayed to an upstream now.", {"upstream"}}};
  values connections_total{all,
                           counter,
                           {"kubelane_connections_total",
                            "Client connections that ended, by upstream and end.",
                            {"end", "upstream"}}};
  values rejected_total{all,
                        counter,
                        {"kubelane_connections_rejected_total",
                         "Client connections not taken on, by reason.",
                         {"reason"}}};
  values bytes{all,
               counter,
               {"kubelane_bytes_total",
                "Bytes relayed; direction up is client to server.",
                {"direction", "upstream"}}};
  durations dial_duration{all,
                          {"kubelane_dial_duration_seconds",
                           "Time to connect to an upstream for a client.",
                           {"upstream"}}};
  values dials_total{all,
                     counter,
                     {"kubelane_dials_total",
                      "Dials for clients, by upstream and result.",
                      {"result", "upstream"}}};
  values hedges_total{all,
                      counter,
                      {"kubelane_hedges_total",
                       "Dials or first flights sent to a second upstream because the first was "
                       "slow, by kind.",
                       {"kind"}}};
  values probes_total{all,
                      counter,
                      {"kubelane_probes_total",
                       "Health probes, by upstream and outcome.",
                       {"outcome", "upstream"}}};
  durations probe_duration{
      all, {"kubelane_probe_duration_seconds", "Time of a health probe.", {"upstream"}}};
  values transitions_total{all,
                           counter,
                           {"kubelane_upstream_transitions_total",
                            "Changes of an upstream's state, by the new state.",
                            {"to", "upstream"}}};
  values reset_total{all,
                     counter,
                     {"kubelane_connections_reset_total",
                      "Connections taken away from an upstream because of its state, by cause.",
                      {"cause", "upstream"}}};
  values would_reset_total{all,
                           counter,
                           {"kubelane_would_reset_total",
                            "Connections that failover.mode act would have taken away, counted "
                            "while it is observe.",
                            {"cause", "upstream"}}};
  values certificate_expiry{all,
                            gauge,
                            {"kubelane_upstream_certificate_expiry_timestamp_seconds",
                             "When an upstream's serving certificate expires, as Unix time.",
                             {"upstream"}}};

  values ready{
      all,
      gauge,
      {"kubelane_ready", "1 while at least one API server is usable and /readyz answers 200."}};
  values withheld{all,
                  gauge,
                  {"kubelane_resets_withheld",
                   "1 while a reset or drain is due but no other upstream could take the "
                   "connections."}};
  values panic{all,
               gauge,
               {"kubelane_panic_mode", "1 while no upstream looks usable and every one is tried."}};
  values quorum{all,
                gauge,
                {"kubelane_control_plane_quorum",
                 "Control planes with stacked etcd as this node sees them: members, majority, "
                 "ready, spare (failures left before the quorum is lost; negative: it is lost).",
                 {"kind"}}};
  values lag{all,
             gauge,
             {"kubelane_loop_lag_seconds", "Worst lateness of the event loop in the last minute."}};
  values reloads{
      all,
      counter,
      {"kubelane_config_reloads_total", "Configuration reloads, by result.", {"result"}}};
  values fallback{
      all, gauge, {"kubelane_config_fallback", "1 while running on the last good configuration."}};
  values last_reload{all,
                     gauge,
                     {"kubelane_config_last_reload_success_timestamp_seconds",
                      "When a configuration was last taken on, as Unix time."}};
  values last_discovery{all,
                        gauge,
                        {"kubelane_discovery_last_success_timestamp_seconds",
                         "When the API servers were last discovered, as Unix time; 0: never."}};
  values stored{all,
                gauge,
                {"kubelane_stored_connections",
                 "Connections held in the service manager's descriptor store, which survive a "
                 "restart."}};
  values stored_limit{all,
                      gauge,
                      {"kubelane_stored_connections_limit",
                       "How many connections fit into the service manager's descriptor store; 0: "
                       "there is none."}};
  values restored{all,
                  counter,
                  {"kubelane_restored_connections_total",
                   "Connections taken over from the process before this one."}};
  values unrestored{all,
                    counter,
                    {"kubelane_unrestored_connections_total",
                     "Connections of the process before this one that were ended at the start, not "
                     "taken over."}};
  values lines_dropped{
      all,
      counter,
      {"kubelane_log_lines_dropped_total", "Log lines lost because nobody read them."}};
  values build{
      all, gauge, {"kubelane_build_info", "1, with the version of this program.", {"version"}}};

  values cpu{
      all, counter, {"process_cpu_seconds_total", "User and system CPU time spent in seconds."}};
  values resident{all, gauge, {"process_resident_memory_bytes", "Resident memory size in bytes."}};
  values virtual_memory{
      all, gauge, {"process_virtual_memory_bytes", "Virtual memory size in bytes."}};
  values open_descriptors{all, gauge, {"process_open_fds", "Number of open file descriptors."}};
  values max_descriptors{
      all, gauge, {"process_max_fds", "Maximum number of open file descriptors."}};
  values start_time{
      all, gauge, {"process_start_time_seconds", "Start time of the process, as Unix time."}};
};

metrics::metrics(std::string_view version) : families_(std::make_unique<families>()) {
  auto& all = *families_;
  all.build.at(version) = 1;
  // What is 0 is shown too: a rate needs a first value.
  for (const char* result : {"accepted", "rejected"}) all.reloads.at(result);
  for (auto* each : {&all.ready, &all.withheld, &all.panic, &all.lag, &all.fallback,
                     &all.last_reload, &all.last_discovery, &all.stored, &all.stored_limit,
                     &all.restored, &all.unrestored, &all.lines_dropped})
    each->at();
}

metrics::~metrics() = default;

void metrics::state(std::string_view upstream, std::string_view state) {
  for (const char* each : states) families_->state.at(each, upstream) = state == each ? 1 : 0;
}

void metrics::connections(std::string_view upstream, std::size_t count) {
  families_->connections.at(upstream) = static_cast<double>(count);
}

void metrics::bytes_total(std::string_view upstream, std::uint64_t sent, std::uint64_t received) {
  raise_to(families_->bytes.at("up", upstream), static_cast<double>(sent));
  raise_to(families_->bytes.at("down", upstream), static_cast<double>(received));
}

void metrics::connection_ended(std::string_view upstream, std::string_view end) {
  ++families_->connections_total.at(end, upstream);
}

void metrics::dial_ended(std::string_view upstream, std::string_view result, double seconds) {
  ++families_->dials_total.at(result, upstream);
  families_->dial_duration.observe(upstream, seconds);
}

void metrics::probe_ended(std::string_view upstream, std::string_view outcome, double seconds) {
  ++families_->probes_total.at(outcome, upstream);
  families_->probe_duration.observe(upstream, seconds);
}

void metrics::transition(std::string_view upstream, std::string_view to) {
  ++families_->transitions_total.at(to, upstream);
}

void metrics::connection_reset(std::string_view upstream, std::string_view cause) {
  ++families_->reset_total.at(cause, upstream);
}

void metrics::would_reset(std::string_view upstream, std::string_view cause, std::size_t count) {
  families_->would_reset_total.at(cause, upstream) += static_cast<double>(count);
}

void metrics::certificate_expiry(std::string_view upstream, double unix_seconds) {
  families_->certificate_expiry.at(upstream) = unix_seconds;
}

void metrics::forget(std::string_view upstream) {
  families_->all.forget(upstream);
}

void metrics::connection_rejected(std::string_view reason) {
  ++families_->rejected_total.at(reason);
}

void metrics::hedged(std::string_view kind) {
  ++families_->hedges_total.at(kind);
}

void metrics::ready(bool is_ready) {
  families_->ready.at() = is_ready;
}

void metrics::resets_withheld(bool withheld) {
  families_->withheld.at() = withheld;
}

void metrics::panic_mode(bool panic) {
  families_->panic.at() = panic;
}

void metrics::quorum(int members, int majority, int ready, int spare) {
  auto& gauges = families_->quorum;
  gauges.at("members") = members;
  gauges.at("majority") = majority;
  gauges.at("ready") = ready;
  gauges.at("spare") = spare;
}

void metrics::no_quorum() {
  families_->quorum.clear();
}

void metrics::loop_lag(double seconds) {
  families_->lag.at() = seconds;
}

void metrics::config_reload(std::string_view result) {
  ++families_->reloads.at(result);
}

void metrics::config_loaded(double unix_seconds) {
  families_->last_reload.at() = unix_seconds;
}

void metrics::config_fallback(bool fallback) {
  families_->fallback.at() = fallback;
}

void metrics::discovery_succeeded(double unix_seconds) {
  families_->last_discovery.at() = unix_seconds;
}

void metrics::stored_connections(std::size_t count, std::size_t limit) {
  families_->stored.at() = static_cast<double>(count);
  families_->stored_limit.at() = static_cast<double>(limit);
}

void metrics::restored_connection() {
  ++families_->restored.at();
}

void metrics::unrestored_connections(std::size_t count) {
  families_->unrestored.at() += static_cast<double>(count);
}

void metrics::log_lines_dropped_total(std::uint64_t value) {
  raise_to(families_->lines_dropped.at(), static_cast<double>(value));
}

void metrics::step() {
  families_->descriptors.step();
}

std::string metrics::render() {
  auto& all = *families_;
  all.open_descriptors.at() = static_cast<double>(all.descriptors.value());
  if (const auto process = read_process_figures()) {
    raise_to(all.cpu.at(), process->cpu_seconds);
    all.resident.at() = static_cast<double>(process->resident_bytes);
    all.virtual_memory.at() = static_cast<double>(process->virtual_bytes);
    all.max_descriptors.at() = static_cast<double>(process->max_descriptors);
    all.start_time.at() = process->start_time_seconds;
  }
  return all.all.render();
}

}  // namespace kubelane::telemetry
