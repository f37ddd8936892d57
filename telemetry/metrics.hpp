#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace kubelane::telemetry {

/// Every metric of kubelane, and their rendering in Prometheus' text format.
///
/// Knows names, help texts and labels; nothing of where the values come from. Counters that the hot
/// path keeps as plain numbers are handed over as totals (`*_total(…, value)`); a total never
/// falls. An upstream's series vanish with `forget`.
class metrics {
 public:
  explicit metrics(const std::string& version);
  ~metrics();

  // One upstream; `upstream` is its name.
  void state(const std::string& upstream, const std::string& state);
  void connections(const std::string& upstream, std::size_t count);
  void bytes_total(const std::string& upstream, std::uint64_t sent, std::uint64_t received);
  void connection_ended(const std::string& upstream, const std::string& end);
  void dial_ended(const std::string& upstream, const std::string& result, double seconds);
  void probe_ended(const std::string& upstream, const std::string& outcome, double seconds);
  void transition(const std::string& upstream, const std::string& to);
  void connection_reset(const std::string& upstream, const std::string& cause);
  void would_reset(const std::string& upstream, const std::string& cause, std::size_t count);
  void certificate_expiry(const std::string& upstream, double unix_seconds);
  void forget(const std::string& upstream);

  // The whole.
  void connection_rejected(const std::string& reason);
  void hedged(const std::string& kind);
  void resets_withheld(bool withheld);
  void panic_mode(bool panic);
  /// Shown only for stacked etcd.
  void quorum(int members, int majority, int ready, int spare);
  void no_quorum();
  void loop_lag(double seconds);
  void config_reload(const std::string& result);
  void config_loaded(double unix_seconds);
  void config_fallback(bool fallback);
  void discovery_succeeded(double unix_seconds);
  void stored_connections(std::size_t count);
  void restored_connection();
  void log_lines_dropped_total(std::uint64_t value);

  /// The text exposition format, version 0.0.4, with the process' own figures as of now.
  std::string render();

 private:
  struct families;
  std::unique_ptr<families> families_;
};

}  // namespace kubelane::telemetry
