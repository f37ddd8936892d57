#pragma once

#include "proxy/upstream_pool.hpp"

#include <cstdint>
#include <deque>
#include <string>

namespace kubelane::proxy {

/// One change of an upstream's state, as remembered for people.
struct state_change {
  std::int64_t at_ms = 0;  ///< Unix time in milliseconds
  std::string upstream;
  std::string from;
  std::string to;
  std::string cause;
};

/// What is shown of stacked control planes.
struct quorum_view {
  int members = 0;
  int majority = 0;
  int ready = 0;
  int spare = 0;  ///< failures left before the quorum is lost; negative: it is lost
};

/// Counts every wanted upstream as one member, the `ready` ones as ready.
quorum_view quorum_of(const pool_status& status);

struct status_document {
  std::string version;
  bool ready = false;
  pool_status pool;
  std::optional<quorum_view> quorum;  ///< nothing: etcd is external
  std::size_t connections = 0;
  const std::deque<state_change>* events = nullptr;  ///< oldest first; may be null
  time_point steady_now;
  std::int64_t unix_now_ms = 0;
};

/// The JSON of /status; times are RFC 3339 in UTC.
std::string to_json(const status_document& document);

/// The body of /readyz and /healthz: one line an upstream, in the API server's own style.
std::string readiness_text(const pool_status& status, bool ready);

/// RFC 3339 with milliseconds, UTC.
std::string rfc3339(std::int64_t unix_ms);

}  // namespace kubelane::proxy
