#pragma once

#include "config/config.hpp"

#include <iosfwd>

namespace kubelane::commands {

/// Asks every upstream once, all at the same time, and prints one verdict each.
///
/// Returns 0 if every one answered as `ready` would, else 3.
int probe_all(const config::config& settings, std::ostream& out);

}  // namespace kubelane::commands
