#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kubelane::health {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using std::chrono::milliseconds;

/// What is known about an upstream's fitness; each is shown with a cause and a time.
enum class state {
  unknown,        ///< not probed yet, or this node's own trouble hides it
  ready,          ///< a probe answered 200, or 401/403 (alive, readiness unknown)
  slow,           ///< probes time out, bytes still come from it
  shutting_down,  ///< it says so, and serves on
  not_ready,      ///< any other answer than 200
  refused,        ///< nobody listens
  hung,           ///< probes time out, nothing comes from it
  dead,           ///< its host's kernel is silent
  impostor,       ///< its certificate does not verify, or it does not speak TLS
  unresolved,     ///< a DNS name without an address
};

/// Why an upstream is in the pool; separate from its health.
enum class membership { configured, discovered, leaving };

/// How one probe ended.
enum class outcome {
  passed,             ///< 200 (in tcp mode: connected)
  unauthorized,       ///< 401 or 403: alive, readiness unknown
  shutting_down,      ///< not 200, and the body names the failed check `shutdown`
  not_ready,          ///< any other answer
  timed_out,          ///< a phase exceeded its limit; soft
  lost,               ///< reset or end before the answer; soft
  refused,            ///< connect refused
  host_silent,        ///< EHOSTUNREACH, keep-alive lost, TCP user time-out, unacknowledged request
  local_trouble,      ///< ENETUNREACH, EACCES, no descriptor: says nothing of the upstream
  wrong_certificate,  ///< CA or name does not verify
  bad_validity,       ///< certificate expired or not yet valid
  not_tls,            ///< the answer is not TLS, or the handshake failed for another reason
};

/// The phase a probe had reached when it ended.
enum class phase { connect, tls, answer };

/// The result of one probe.
struct probe_report {
  outcome result = outcome::timed_out;
  phase reached = phase::connect;
  time_point started{};  ///< when this exchange began (the request, on a held connection)
  time_point finished{};
  bool verified = true;      ///< false: identity could not be checked (no CA yet, or verify: none)
  bool etcd_failed = false;  ///< not_ready, and the failed checks name etcd or etcd-readiness
  /// The cause in words, as shown to people: `etcd, poststarthook/x`, `certificate expired`,
  /// `401 Unauthorized`, `no CA file yet`; empty for a plain pass.
  std::string detail{};
  /// How late this process' own loop was at worst meanwhile; its starvation is not the server's.
  milliseconds loop_lag{0};
  /// Bytes of the server's process arrived during this probe although it failed (it answered a
  /// handshake, but not the request): such a server is slow, not hung.
  bool heard = false;
};

/// How one client's dial to an upstream ended.
enum class dial_result {
  connected,
  refused,
  timed_out,
  lost,
  host_silent,
  local_trouble,
  abandoned
};

const char* to_string(state value) noexcept;  // in words as documented: "not_ready"
/// The inverse; nothing for anything else.
std::optional<state> state_from(std::string_view word) noexcept;
const char* to_string(membership value) noexcept;
const char* to_string(outcome value) noexcept;
const char* to_string(dial_result value) noexcept;

}  // namespace kubelane::health
