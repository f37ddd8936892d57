#pragma once

#include "inventory/value.hpp"

#include <string>

namespace kubelane::inventory {

enum class severity { error, warning, notice };

/// One thing that is wrong with an inventory, or deserves a look.
struct finding {
  std::string rule;  ///< as `even-etcd`: what `--accept` takes
  severity how = severity::error;
  std::string host;  ///< empty: about no host in particular
  place at;
  std::string message;  ///< what it is, and what would be right
};

}  // namespace kubelane::inventory
