#include "telemetry/metrics.hpp"

#include "telemetry/process.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <map>
#include <vector>

namespace kubelane::telemetry {
namespace {

using labels = std::map<std::string, std::string>;

// Few buckets: three upstreams must stay well under 150 series a worker.
const prometheus::Histogram::BucketBoundaries duration_buckets = {0.001, 0.01, 0.1, 0.5, 1, 3};

constexpr std::array states = {"unknown", "ready", "slow", "shutting_down", "not_ready",
                               "refused", "hung",  "dead", "impostor",      "unresolved"};

/// A family of which single upstreams' series can be dropped again.
template <typename Metric>
class labelled {
 public:
  labelled(prometheus::Family<Metric>& family) : family_(family) {}

  template <typename... Arguments>
  Metric& get(const labels& with, const Arguments&... arguments) {
    auto [place, added] = known_.try_emplace(with, nullptr);
    if (added) place->second = &family_.Add(with, arguments...);
    return *place->second;
  }

  void clear() {
    for (const auto& [with, metric] : known_) family_.Remove(metric);
    known_.clear();
  }

  void forget(const std::string& upstream) {
    for (auto entry = known_.begin(); entry != known_.end();) {
      const auto label = entry->first.find("upstream");
      if (label == entry->first.end() || label->second != upstream) {
        ++entry;
        continue;
      }
      family_.Remove(entry->second);
      entry = known_.erase(entry);
    }
  }

 private:
  prometheus::Family<Metric>& family_;
  std::map<labels, Metric*> known_;
};

void raise_to(prometheus::Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

}  // namespace

struct metrics::families {
  prometheus::Registry registry;

  labelled<prometheus::Gauge> gauge(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  labelled<prometheus::Counter> counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  labelled<prometheus::Histogram> histogram(const char* name, const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }

  labelled<prometheus::Gauge> upstream_state =
      gauge("kubelane_upstream_state", "1 for the state an upstream is in, 0 for the others.");
  labelled<prometheus::Gauge> upstream_connections =
      gauge("kubelane_upstream_connections", "Connections relayed to an upstream now.");
  labelled<prometheus::Counter> connections_total =
      counter("kubelane_connections_total", "Client connections that ended, by upstream and end.");
  labelled<prometheus::Counter> rejected_total =
      counter("kubelane_connections_rejected_total", "Client connections not taken on, by reason.");
  labelled<prometheus::Counter> bytes =
      counter("kubelane_bytes_total", "Bytes relayed; direction up is client to server.");
  labelled<prometheus::Histogram> dial_duration =
      histogram("kubelane_dial_duration_seconds", "Time to connect to an upstream for a client.");
  labelled<prometheus::Counter> dials_total =
      counter("kubelane_dials_total", "Dials for clients, by upstream and result.");
  labelled<prometheus::Counter> hedges_total = counter(
      "kubelane_hedges_total",
      "Dials or first flights sent to a second upstream because the first was slow, by kind.");
  labelled<prometheus::Counter> probes_total =
      counter("kubelane_probes_total", "Health probes, by upstream and outcome.");
  labelled<prometheus::Histogram> probe_duration =
      histogram("kubelane_probe_duration_seconds", "Time of an answered health probe.");
  labelled<prometheus::Counter> transitions_total = counter(
      "kubelane_upstream_transitions_total", "Changes of an upstream's state, by the new state.");
  labelled<prometheus::Counter> reset_total =
      counter("kubelane_connections_reset_total",
              "Connections taken away from an upstream because of its state, by cause.");
  labelled<prometheus::Counter> would_reset_total = counter(
      "kubelane_would_reset_total",
      "Connections that failover.mode act would have taken away, counted while it is observe.");
  labelled<prometheus::Gauge> certificate_expiry_gauge =
      gauge("kubelane_upstream_certificate_expiry_timestamp_seconds",
            "When an upstream's serving certificate expires, as Unix time.");

  prometheus::Gauge& withheld =
      gauge("kubelane_resets_withheld",
            "1 while a reset or drain is due but no other upstream could take the connections.")
          .get({});
  prometheus::Gauge& panic =
      gauge("kubelane_panic_mode", "1 while no upstream looks usable and every one is tried.")
          .get({});
  labelled<prometheus::Gauge> control_plane_quorum = gauge(
      "kubelane_control_plane_quorum",
      "Control planes with stacked etcd as this node sees them: members, majority, ready, spare "
      "(failures left before the quorum is lost; negative: it is lost).");
  prometheus::Gauge& lag =
      gauge("kubelane_loop_lag_seconds", "Worst lateness of the event loop in the last minute.")
          .get({});
  labelled<prometheus::Counter> reloads =
      counter("kubelane_config_reloads_total", "Configuration reloads, by result.");
  prometheus::Gauge& fallback =
      gauge("kubelane_config_fallback", "1 while running on the last good configuration.").get({});
  prometheus::Gauge& last_reload = gauge("kubelane_config_last_reload_success_timestamp_seconds",
                                         "When a configuration was last taken on, as Unix time.")
                                       .get({});
  prometheus::Gauge& last_discovery =
      gauge("kubelane_discovery_last_success_timestamp_seconds",
            "When the API servers were last discovered, as Unix time; 0: never.")
          .get({});
  prometheus::Gauge& stored =
      gauge("kubelane_stored_connections",
            "Connections held in the service manager's descriptor store, which survive a restart.")
          .get({});
  prometheus::Counter& restored =
      counter("kubelane_restored_connections_total",
              "Connections taken over from the process before this one.")
          .get({});
  prometheus::Counter& lines_dropped =
      counter("kubelane_log_lines_dropped_total", "Log lines lost because nobody read them.")
          .get({});
  labelled<prometheus::Gauge> build =
      gauge("kubelane_build_info", "1, with the version of this program.");

  prometheus::Counter& cpu =
      counter("process_cpu_seconds_total", "User and system CPU time spent in seconds.").get({});
  prometheus::Gauge& resident =
      gauge("process_resident_memory_bytes", "Resident memory size in bytes.").get({});
  prometheus::Gauge& virtual_memory =
      gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.").get({});
  prometheus::Gauge& open_descriptors =
      gauge("process_open_fds", "Number of open file descriptors.").get({});
  prometheus::Gauge& max_descriptors =
      gauge("process_max_fds", "Maximum number of open file descriptors.").get({});
  prometheus::Gauge& start_time =
      gauge("process_start_time_seconds", "Start time of the process, as Unix time.").get({});
};

metrics::metrics(const std::string& version) : families_(std::make_unique<families>()) {
  families_->build.get({{"version", version}}).Set(1);
  for (const char* result : {"accepted", "rejected"}) families_->reloads.get({{"result", result}});
}

metrics::~metrics() = default;

void metrics::state(const std::string& upstream, const std::string& state) {
  for (const std::string each : states)
    families_->upstream_state.get({{"upstream", upstream}, {"state", each}}).Set(each == state);
}

void metrics::connections(const std::string& upstream, std::size_t count) {
  families_->upstream_connections.get({{"upstream", upstream}}).Set(static_cast<double>(count));
}

void metrics::bytes_total(const std::string& upstream, std::uint64_t sent, std::uint64_t received) {
  raise_to(families_->bytes.get({{"upstream", upstream}, {"direction", "up"}}),
           static_cast<double>(sent));
  raise_to(families_->bytes.get({{"upstream", upstream}, {"direction", "down"}}),
           static_cast<double>(received));
}

void metrics::connection_ended(const std::string& upstream, const std::string& end) {
  families_->connections_total.get({{"upstream", upstream}, {"end", end}}).Increment();
}

void metrics::dial_ended(const std::string& upstream, const std::string& result, double seconds) {
  families_->dials_total.get({{"upstream", upstream}, {"result", result}}).Increment();
  families_->dial_duration.get({{"upstream", upstream}}, duration_buckets).Observe(seconds);
}

void metrics::probe_ended(const std::string& upstream, const std::string& outcome, double seconds) {
  families_->probes_total.get({{"upstream", upstream}, {"outcome", outcome}}).Increment();
  families_->probe_duration.get({{"upstream", upstream}}, duration_buckets).Observe(seconds);
}

void metrics::transition(const std::string& upstream, const std::string& to) {
  families_->transitions_total.get({{"upstream", upstream}, {"to", to}}).Increment();
}

void metrics::connection_reset(const std::string& upstream, const std::string& cause) {
  families_->reset_total.get({{"upstream", upstream}, {"cause", cause}}).Increment();
}

void metrics::would_reset(const std::string& upstream, const std::string& cause,
                          std::size_t count) {
  families_->would_reset_total.get({{"upstream", upstream}, {"cause", cause}})
      .Increment(static_cast<double>(count));
}

void metrics::certificate_expiry(const std::string& upstream, double unix_seconds) {
  families_->certificate_expiry_gauge.get({{"upstream", upstream}}).Set(unix_seconds);
}

void metrics::forget(const std::string& upstream) {
  auto& all = *families_;
  for (auto* family :
       {&all.upstream_state, &all.upstream_connections, &all.certificate_expiry_gauge})
    family->forget(upstream);
  for (auto* family : {&all.connections_total, &all.bytes, &all.dials_total, &all.probes_total,
                       &all.transitions_total, &all.reset_total, &all.would_reset_total})
    family->forget(upstream);
  for (auto* family : {&all.dial_duration, &all.probe_duration}) family->forget(upstream);
}

void metrics::connection_rejected(const std::string& reason) {
  families_->rejected_total.get({{"reason", reason}}).Increment();
}

void metrics::hedged(const std::string& kind) {
  families_->hedges_total.get({{"kind", kind}}).Increment();
}

void metrics::resets_withheld(bool withheld) {
  families_->withheld.Set(withheld);
}

void metrics::panic_mode(bool panic) {
  families_->panic.Set(panic);
}

void metrics::quorum(int members, int majority, int ready, int spare) {
  auto& gauges = families_->control_plane_quorum;
  gauges.get({{"kind", "members"}}).Set(members);
  gauges.get({{"kind", "majority"}}).Set(majority);
  gauges.get({{"kind", "ready"}}).Set(ready);
  gauges.get({{"kind", "spare"}}).Set(spare);
}

void metrics::no_quorum() {
  families_->control_plane_quorum.clear();
}

void metrics::loop_lag(double seconds) {
  families_->lag.Set(seconds);
}

void metrics::config_reload(const std::string& result) {
  families_->reloads.get({{"result", result}}).Increment();
}

void metrics::config_loaded(double unix_seconds) {
  families_->last_reload.Set(unix_seconds);
}

void metrics::config_fallback(bool fallback) {
  families_->fallback.Set(fallback);
}

void metrics::discovery_succeeded(double unix_seconds) {
  families_->last_discovery.Set(unix_seconds);
}

void metrics::stored_connections(std::size_t count) {
  families_->stored.Set(static_cast<double>(count));
}

void metrics::restored_connection() {
  families_->restored.Increment();
}

void metrics::log_lines_dropped_total(std::uint64_t value) {
  raise_to(families_->lines_dropped, static_cast<double>(value));
}

std::string metrics::render() {
  if (const auto process = read_process_figures()) {
    raise_to(families_->cpu, process->cpu_seconds);
    families_->resident.Set(static_cast<double>(process->resident_bytes));
    families_->virtual_memory.Set(static_cast<double>(process->virtual_bytes));
    families_->open_descriptors.Set(static_cast<double>(process->open_descriptors));
    families_->max_descriptors.Set(static_cast<double>(process->max_descriptors));
    families_->start_time.Set(process->start_time_seconds);
  }
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

}  // namespace kubelane::telemetry
