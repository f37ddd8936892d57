#pragma once

#include "config/config.hpp"

#include <chrono>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace kubelane::commands {

/// The exit status of a check whose configuration is good, and which a server did not pass.
constexpr int probe_failed = 3;

/// What one answer, or none, showed of an API server.
struct probed {
  std::string name;
  std::string verdict;  ///< the state that a running kubelane would give it, with the cause
  bool good = false;    ///< as `ready`
  std::string date;     ///< the answer's `Date` header; empty without one
  std::chrono::system_clock::time_point heard{};                ///< when the answer was here
  std::optional<std::chrono::system_clock::time_point> expiry;  ///< of its certificate
};

struct probe_results {
  std::string note;  ///< what keeps identities from being verified; empty if nothing does
  std::vector<probed> servers;
  bool all_good() const;
};

/// Asks every upstream once, all at the same time. A DNS name is one server an address.
probe_results probe_all(const config::config& settings);

/// One line a server; 0 if all are good, else `probe_failed`.
int print(const probe_results& what, std::ostream& out);

}  // namespace kubelane::commands
