#pragma once

#include "config/config.hpp"

#include <string>
#include <vector>

namespace kubelane::config {

/// What a reload would change. An upstream is the same as long as its address is.
struct changes {
  std::vector<upstream> added;       ///< as the new configuration has them
  std::vector<upstream> removed;     ///< as the old configuration has them
  std::vector<upstream> kept;        ///< as the new has them: name and zone may be others
  std::vector<std::string> live;     ///< as `health.timeout: 500ms -> 1s`; in force at once
  std::vector<std::string> restart;  ///< the same, for what needs a restart: the listeners
  bool empty() const;
};

/// Both are valid configurations.
changes diff(const config& from, const config& to);

/// What a running kubelane can change to: `next`, but with the listeners it has.
config keep_listeners(const config& running, config next);

}  // namespace kubelane::config
