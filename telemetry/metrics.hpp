#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kubelane::telemetry {

/// Every metric of kubelane, and their rendering in Prometheus' text format.
///
/// Knows names, help texts and labels; nothing of where the values come from. Counters that the hot
/// path keeps as plain numbers are handed over as totals (`*_total(…, value)`); a total never
/// falls. An upstream's series vanish with `forget`. Counting takes no memory but for a new series,
/// and no more than some comparisons.
class metrics {
 public:
  explicit metrics(std::string_view version);
  ~metrics();

  // One upstream; `upstream` is its name.
  void state(std::string_view upstream, std::string_view state);
  void connections(std::string_view upstream, std::size_t count);
  void bytes_total(std::string_view upstream, std::uint64_t sent, std::uint64_t received);
  void connection_ended(std::string_view upstream, std::string_view end);
  void dial_ended(std::string_view upstream, std::string_view result, double seconds);
  void probe_ended(std::string_view upstream, std::string_view outcome, double seconds);
  void transition(std::string_view upstream, std::string_view to);
  void connection_reset(std::string_view upstream, std::string_view cause);
  void would_reset(std::string_view upstream, std::string_view cause, std::size_t count);
  void certificate_expiry(std::string_view upstream, double unix_seconds);
  void forget(std::string_view upstream);

  // The whole.
  void connection_rejected(std::string_view reason);
  void hedged(std::string_view kind);
  void ready(bool is_ready);
  void resets_withheld(bool withheld);
  void panic_mode(bool panic);
  /// Shown only for stacked etcd.
  void quorum(int members, int majority, int ready, int spare);
  void no_quorum();
  void loop_lag(double seconds);
  void config_reload(std::string_view result);
  void config_loaded(double unix_seconds);
  void config_fallback(bool fallback);
  void discovery_succeeded(double unix_seconds);
  /// `limit` fit; 0 if there is no store.
  void stored_connections(std::size_t count, std::size_t limit);
  void restored_connection();
  void unrestored_connections(std::size_t count);
  void log_lines_dropped_total(std::uint64_t value);

  /// To be called now and then: goes on with what is too long for one turn of the loop.
  void step();
  /// The text exposition format, version 0.0.4, with the process' own figures as of now.
  std::string render();

 private:
  struct families;
  std::unique_ptr<families> families_;
};

}  // namespace kubelane::telemetry
