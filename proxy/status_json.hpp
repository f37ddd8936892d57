#pragma once

#include "proxy/event.hpp"
#include "proxy/headline.hpp"
#include "proxy/probe_history.hpp"
#include "proxy/upstream_pool.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace kubelane::proxy {

/// What the server notes of an upstream beside what the pool knows.
struct upstream_notes {
  std::int64_t certificate_expiry_ms = 0;  ///< Unix time in milliseconds; 0: not known
  probe_history probes;
};
using notes_by_upstream = std::map<upstream_id, upstream_notes>;

struct status_document {
  std::string version;
  std::string node;  ///< the host's name
  int pid = 0;
  std::int64_t started_ms = 0;  ///< Unix time in milliseconds of this process' start
  std::string config_path;
  bool ready = false;
  pool_status pool;
  circumstances beside;
  std::size_t connections = 0;
  const notes_by_upstream* notes = nullptr;          ///< may be null
  const std::deque<state_change>* events = nullptr;  ///< oldest first; may be null
  time_point steady_now;
  std::int64_t unix_now_ms = 0;
};

/// The JSON of /status, with the last hundred events; times are RFC 3339 in UTC.
std::string to_json(const status_document& document);

/// The body of /readyz and /healthz: one line an upstream, in the API server's own style.
std::string readiness_text(const pool_status& status, bool ready);

}  // namespace kubelane::proxy
