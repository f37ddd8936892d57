#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/endpoint.hpp"

namespace kubelane::config {

using std::chrono::milliseconds;

/// Where in the file a value stands; 1-based. 0 means the value is a default.
struct position {
  int line = 0;
  int column = 0;
};

/// One thing that is wrong. Printed as `FILE:LINE:COL: path: message`.
struct problem {
  position at;
  std::string path;     ///< as `upstreams[1].address`
  std::string message;  ///< what it is and what would be right
};

/// One API server as written: an IP address, or a DNS name whose every address becomes an upstream.
struct upstream {
  std::string name;  ///< label in metrics and logs; the address if left out. Unique.
  net::host_port address;  ///< port 6443 if left out
  std::string zone;        ///< failure domain; empty: none
  position at;
};

enum class balance_policy { round_robin, random, least_connections };
enum class probe_mode { readyz, tcp };
enum class verify_mode { full, ca, none };
enum class failover_mode { act, observe };
enum class etcd_topology { stacked, external };
enum class log_level { trace, debug, info, warn, error };
enum class log_format { text, json };

struct probe_tls {
  verify_mode verify = verify_mode::full;  ///< full: CA and name; ca: CA alone; none: neither
  std::string ca_file = "/etc/kubernetes/ssl/ca.crt";
  std::string server_name = "kubernetes.default.svc";  ///< sent as SNI, expected in the certificate
  std::string client_cert_file;  ///< for --anonymous-auth=false; re-read when it changes
  std::string client_key_file;
  std::string kubeconfig;  ///< take CA and credentials from this file instead
};

struct health {
  probe_mode mode = probe_mode::readyz;
  std::string path = "/readyz";
  /// Time between two probes of one upstream, jittered by 20 %. Nothing: `auto`, from the size of
  /// the fleet (see probe_interval). 100ms..1h.
  std::optional<milliseconds> interval;
  /// Limit of each phase (connect, TLS, answer). Raised to 8 round trips, at most 2s. 10ms..10s.
  milliseconds timeout{500};
  int fall = 3;                       ///< soft failures in a row. 1..10
  int rise = 3;                       ///< passes in a row after a fall. 1..10
  milliseconds slow_start{30'000};    ///< 0s..10m; 0: a risen upstream gets its full share at once
  milliseconds hold_down{10'000};     ///< 0s..10m
  probe_tls tls;
};

struct dial {
  milliseconds attempt_timeout{1'000};  ///< 50ms..60s
  milliseconds hedge_after{250};        ///< 10ms..60s
  milliseconds first_answer{500};       ///< 10ms..60s
  milliseconds total_timeout{3'500};    ///< 100ms..120s, not below attempt_timeout
};

struct failover {
  failover_mode mode = failover_mode::act;
  milliseconds suspect_after{300};  ///< 50ms..60s
  milliseconds reset_after{3'000};  ///< 500ms..120s; see hung_reset_after for large fleets
};

struct drain {
  milliseconds etcd{3'000};       ///< each 0s..1h
  milliseconds shutdown{30'000};
  milliseconds other{10'000};
  milliseconds removed{10'000};
  milliseconds busy{60'000};
};

struct relay {
  milliseconds half_closed_timeout{300'000};  ///< 1s..24h
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
  std::vector<net::endpoint> listen = {*net::parse_endpoint("127.0.0.1:6443", 0),
                                       *net::parse_endpoint("[::1]:6443", 0)};
  net::endpoint admin_listen = *net::parse_endpoint("127.0.0.1:8081", 0);
  std::vector<net::endpoint> metrics_listen;
  std::vector<upstream> upstreams;
  std::string zone;
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

/// The probe interval in force: as set, or clamp(nodes / 300 s, 1 s, 15 s).
milliseconds probe_interval(const config& from);

/// How long after its first evidence a hung upstream's connections are reset: `reset_after`, and
/// above 450 nodes at least nodes / 150 s, at most 10 s of that.
milliseconds hung_reset_after(const config& from);

/// Resets of a hung upstream's connections are spread at random over nodes / 1000 s.
milliseconds hung_reset_spread(const config& from);

}  // namespace kubelane::config
