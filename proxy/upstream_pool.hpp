#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"
#include "net/endpoint.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kubelane::proxy {

using health::milliseconds;
using health::time_point;

/// One upstream for as long as the process lives; never reused.
enum class upstream_id : std::uint32_t {};

/// What the data path sees of one upstream; it writes here on every transfer, so it is plain data.
/// Its address is stable until `upstream_gone`.
struct activity {
  time_point last_heard{};        ///< bytes came from it on some connection; epoch: never
  time_point unanswered_since{};  ///< first client bytes sent since last_heard; epoch: none
  std::uint64_t bytes_up = 0;     ///< client to server
  std::uint64_t bytes_down = 0;   ///< server to client
};

/// An upstream to dial.
struct candidate {
  upstream_id id;
  net::endpoint address;
};

/// One member of the wanted set: an upstream of the configuration after resolution.
struct wanted_upstream {
  std::string name;                      ///< `cp1`; `cp1/10.0.0.11` for an address of a DNS name
  std::optional<net::endpoint> address;  ///< nothing: the name has no address yet (`unresolved`)
  std::string zone;
  health::membership member = health::membership::configured;
};

// What the pool asks of its owner. Each names the upstream by id.

/// Probe it as soon as possible instead of waiting for the interval. If a probe is in flight,
/// nothing needs to be done but for `fresh`: `report_probe` asks again if that one began too early.
struct probe_now {
  upstream_id id;
  /// On a new connection, after the probe in flight if there is one: a client was refused, and what
  /// a held connection answers does not show that new ones are accepted.
  bool fresh = false;
};
/// Its state or cause changed; one log line.
struct upstream_changed {
  upstream_id id;
  std::string name;
  health::state from;
  health::state to;
  std::string cause;
  time_point at;
};
/// Reset all its connections, each at random within `spread`.
struct reset_connections {
  upstream_id id;
  std::string cause;  ///< the state's name: hung or dead
  milliseconds spread;
};
/// Let its connections leave in order, each at random within `spread`; one with bytes in the last
/// 250 ms is left until quiet, for at most `busy` (zero: not at all).
struct drain_connections {
  upstream_id id;
  std::string cause;  ///< etcd, shutdown, refused, other, removed
  milliseconds spread;
  milliseconds busy;
};
/// Connections that wait for their turn to be reset or drained stay.
struct call_off {
  upstream_id id;
};
/// failover.mode is observe: this many connections would have been reset or drained now.
struct would_close {
  upstream_id id;
  std::string cause;
  std::size_t connections;
};
/// A removed upstream's last connection ended; its id and `activity` are no longer valid.
struct upstream_gone {
  upstream_id id;
  std::string name;
};

using effect = std::variant<probe_now, upstream_changed, reset_connections, drain_connections,
                            call_off, would_close, upstream_gone>;

/// One upstream as shown to people.
struct upstream_status {
  upstream_id id;
  std::string name;
  std::optional<net::endpoint> address;
  std::string zone;
  health::membership member;
  bool removed;  ///< no longer wanted; lives until its last connection ends
  health::state state;
  std::string cause;
  time_point since;  ///< of the state
  bool doubtful;     ///< last in its tier
  int tier;          ///< 1..4, 5: an impostor; 0: no candidate (removed or unresolved)
  std::size_t connections;
  std::optional<std::chrono::microseconds> probe;  ///< duration of the last answered probe
  bool drained;                                    ///< its connections are leaving or have left
};

struct pool_status {
  std::vector<upstream_status> upstreams;  ///< in the order of the wanted set, removed ones last
  /// At least one upstream is in tier 1 to 3, and its last answer was verified, or was a 200 while
  /// identity cannot be checked.
  bool usable;
  bool panic;  ///< the best tier is 4: everything is tried, nothing is reset for soft reasons
  bool resets_withheld;  ///< a reset or drain is due, but no other upstream could take it
  /// Every upstream is refused, hung, dead or unresolved, and none has passed since: dials are
  /// limited.
  bool all_down;
};

/// Every upstream's state; the one owner of what is known and of who may be closed when.
///
/// Pure: time and randomness are arguments, what has to be done comes out of `take_effects`.
/// health::tracker says how evidence becomes a state, proxy::closing when connections leave for it.
/// What concerns several upstreams is decided here:
///
/// - The first failure of one, or a verdict (hung, dead), probes all others at once; for a lost
/// etcd
///   again two seconds later.
/// - Nothing is closed unless another can take it: one that answered a probe begun after the first
///   evidence, and failed none since. If two were convicted within ten seconds, after the later
///   verdict.
/// - A silent upstream is asked again as soon as such an answer is there, and is reset only if it
/// is
///   silent to that too: what was dark for all may just be back.
/// - Two seconds of silence convict nobody but a dead host, however hastily it was probed.
/// - An upstream that lost etcd is drained only if all others that were ready in the ten seconds
///   before answered 200 to a probe begun two seconds after its first failure, or all but those
///   that have been red for ten seconds: an election turns all red, one after the other.
/// - While no upstream is in the tiers 1 to 3 (panic) only a dead one's connections are reset.
class upstream_pool {
 public:
  /// `random01` gives uniform numbers in [0, 1).
  upstream_pool(const config::config& settings, std::function<double()> random01);
  ~upstream_pool();

  /// New settings (a reload); the upstream set is not touched.
  void configure(const config::config& settings);

  /// Makes the set equal `wanted`: what stays keeps health and connections, what is new starts
  /// `unknown`, what is gone gets no new connection at once, and its connections leave after
  /// drain.removed. Identity is the endpoint (the name, while unresolved); the same endpoint twice
  /// is one upstream. A removed one stays known until its last connection ended, at least for
  /// dial.total_timeout.
  void reconcile(const std::vector<wanted_upstream>& wanted, time_point now);

  /// Every upstream that has an address and is wanted, each once, in the order to try: tier,
  /// doubtful last (in tier 4: silent ones), this node's zone, policy. Under a microsecond for
  /// three.
  std::vector<candidate> candidates(time_point now);

  /// Where the data path notes transfers. `id` must be known.
  activity& activity_of(upstream_id id);
  /// A connection began or ended; a dial counts as one from its start, so that a burst of clients
  /// spreads.
  void opened(upstream_id id);
  void closed(upstream_id id, time_point now);
  /// The client whose bytes may be those unanswered sent FIN or left: no longer a suspicion.
  void forget_unanswered(upstream_id id);

  /// Takes a probe's result; returns how long to wait before the next probe.
  milliseconds report_probe(upstream_id id, const health::probe_report& report, time_point now);
  /// A probe that was reported as timed out was answered after all, not by a pass: its report.
  void report_late_answer(upstream_id id, const health::probe_report& report, time_point now);
  /// The outcome of a client's dial.
  void report_dial(upstream_id id, health::dial_result result, time_point now);
  /// The kernel says that its host is silent (held connection unacknowledged, keep-alive lost).
  void report_host_silent(upstream_id id, const std::string& detail, time_point now);

  /// Passes time: suspicion, due resets and drains, hold-down. Call at least every 100 ms. After
  /// one that comes half a second late nobody is suspected and nothing is closed until the next:
  /// what was sent meanwhile has yet to be read.
  void tick(time_point now);

  /// What has to be done since the last call, in order.
  std::vector<effect> take_effects();
  bool has_effects() const noexcept;

  pool_status status(time_point now) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::proxy
