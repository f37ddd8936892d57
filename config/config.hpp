#pragma once

#include "net/endpoint.hpp"
#include "net/subnet.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::config {

using std::chrono::milliseconds;

/// Where in the file a value stands; 1-based, columns in bytes. 0 means the value is a default.
struct position {
  int line = 0;
  int column = 0;
};

/// One thing that is wrong. Printed as `FILE:LINE:COL: path: message`.
struct problem {
  position at;
  std::string path;     ///< as `upstreams[1].address`; `file` or `yaml` if it is about no key
  std::string message;  ///< what it is and what would be right
};

enum class severity { error, warning };

/// What is wrong with a configuration, and what only deserves a look.
struct problems {
  std::vector<problem> list;      ///< errors: with one of them, the configuration is not used
  std::vector<problem> warnings;  ///< the configuration is used all the same
};

/// Path of each key that the file sets -> where its value stands.
using positions = std::map<std::string, position, std::less<>>;

/// `FILE:LINE:COL: path: message`; the message of a warning starts with `warning: `. What has no
/// place of its own (a missing file) is at 1:1, so that every line can be taken apart alike.
std::string describe(std::string_view file, const problem& what, severity how);

/// One API server as written: an IP address, or a DNS name whose every address becomes an upstream.
struct upstream {
  std::string name;  ///< label in metrics and logs; the address if left out. Unique.
  /// Port 6443 if left out. Canonical once loaded (IPv4-mapped is IPv4, names in lower case), so
  /// that equal servers compare equal.
  net::host_port address;
  std::string zone;  ///< failure domain; empty: none
  position at;
};

enum class balance_policy { round_robin, random, least_connections };
enum class probe_mode { readyz, tcp };
enum class verify_mode { full, ca, none };
enum class failover_mode { act, observe };
enum class etcd_topology { stacked, external };
enum class log_level { trace, debug, info, warn, error };
enum class log_format { text, json };

/// `health.tls`. The files need not exist when the configuration is loaded: a node that has not
/// joined its cluster has none yet.
struct probe_tls {
  verify_mode verify = verify_mode::full;  ///< full: CA and name; ca: CA alone; none: neither
  std::string ca_file = "/etc/kubernetes/ssl/ca.crt";
  std::string server_name = "kubernetes.default.svc";  ///< sent as SNI, expected in the certificate
  /// For API servers with --anonymous-auth=false; certificate and key go together.
  std::string client_cert_file;
  std::string client_key_file;
  /// Take CA and credentials from this file instead. The other three files are then not used; a
  /// configuration that sets one of them beside it is refused, for it would be a guess which
  /// counts.
  std::string kubeconfig;
};

struct health {
  /// tcp: connect only; sees neither a frozen nor an unready server.
  probe_mode mode = probe_mode::readyz;
  std::string path = "/readyz";
  /// Time between two probes of one upstream, jittered by 20 %. Nothing: `auto`, from the size of
  /// the fleet (see probe_interval). 100ms..1h.
  std::optional<milliseconds> interval;
  /// Limit of each phase (connect, TLS, answer). Raised to 8 round trips, at most 2s. 10ms..10s.
  milliseconds timeout{500};
  int fall = 3;                     ///< soft failures in a row. 1..10
  int rise = 3;                     ///< passes in a row after a fall. 1..10
  milliseconds slow_start{30'000};  ///< 0s..10m; 0: a risen upstream gets its full share at once
  milliseconds hold_down{10'000};   ///< 0s..10m
  probe_tls tls;
};

struct dial {
  milliseconds attempt_timeout{1'000};  ///< 50ms..1m; the last candidate runs to total_timeout
  milliseconds hedge_after{250};        ///< 10ms..1m: then the next candidate starts beside it
  milliseconds first_answer{500};       ///< 10ms..1m without a byte: ask another server too
  milliseconds total_timeout{3'500};    ///< 100ms..2m, not below attempt_timeout
};

struct failover {
  /// observe: log and count what would be reset or drained, for a trial.
  failover_mode mode = failover_mode::act;
  milliseconds suspect_after{300};  ///< 50ms..1m; client bytes unanswered for so long: probe now
  /// 500ms..2m, not below suspect_after; see hung_reset_after for large fleets.
  milliseconds reset_after{3'000};
};

/// When connections leave a server that still answers, counted from its first failure.
struct drain {
  milliseconds etcd{3'000};       ///< each 0s..1h
  milliseconds shutdown{30'000};  ///< it stops gracefully: left to finish, up to this
  milliseconds other{10'000};     ///< any other failed check
  milliseconds removed{10'000};   ///< it left the configuration
  milliseconds busy{60'000};      ///< a connection in use is left until quiet, up to this
};

struct relay {
  /// 1s..24h. For a pair closed on one side and silent on the other; there is no other idle limit.
  milliseconds half_closed_timeout{300'000};
};

struct cluster {
  int nodes = 100;  ///< 1..100000
  etcd_topology etcd = etcd_topology::stacked;
};

struct limits {
  int connections = 10'000;  ///< 1..1000000
};

struct log {
  log_level level = log_level::info;
  log_format format = log_format::text;
};

/// The whole configuration: complete, validated, immutable once loaded. The members' initialisers
/// are the documented defaults.
struct config {
  /// One to 64 addresses, each with its port. IPv6 wildcards take IPv6 clients alone.
  std::vector<net::endpoint> listen = {*net::parse_endpoint("127.0.0.1:6443", 0),
                                       *net::parse_endpoint("[::1]:6443", 0)};
  /// `admin.listen`: status, health and metrics. Beyond loopback is a warning.
  net::endpoint admin_listen = *net::parse_endpoint("127.0.0.1:8081", 0);
  std::vector<net::endpoint> metrics_listen;  ///< `metrics.listen`: serve /metrics alone. Up to 64
  /// `metrics.allow`: whom `metrics.listen` answers. Empty: everybody. Up to 64 ranges.
  std::vector<net::subnet> metrics_allow;
  std::vector<upstream> upstreams;  ///< one to 1000, addresses unique
  std::string zone;  ///< this node's failure domain: upstreams of the same one come first
  balance_policy balance = balance_policy::least_connections;
  struct health health;
  struct dial dial;
  struct failover failover;
  struct drain drain;
  struct relay relay;
  struct cluster cluster;
  struct limits limits;
  struct log log;
};

std::string_view to_string(balance_policy value);
std::string_view to_string(probe_mode value);
std::string_view to_string(verify_mode value);
std::string_view to_string(failover_mode value);
std::string_view to_string(etcd_topology value);
std::string_view to_string(log_level value);
std::string_view to_string(log_format value);

/// As the file writes it, in the largest unit without a fraction: `0s`, `250ms`, `90s`, `10m`,
/// `1h`.
std::string to_string(milliseconds value);

/// In double quotes, shortened to 80 bytes, control characters escaped: safe in a log line.
std::string quote(std::string_view text);

/// The probe interval in force: as set, or clamp(nodes / 300 s, 1 s, 15 s).
milliseconds probe_interval(const config& from);

/// How long after its first evidence a hung upstream's connections are reset: `reset_after`, and
/// above 450 nodes at least nodes / 150 s, at most 10 s of that.
milliseconds hung_reset_after(const config& from);

/// Resets of a hung upstream's connections are spread at random over nodes / 1000 s.
milliseconds hung_reset_spread(const config& from);

}  // namespace kubelane::config
