#pragma once

#include "config/load.hpp"

#include <optional>
#include <string>

namespace kubelane::commands {

/// The exit status of a command that was given a configuration it cannot use.
constexpr int bad_config = 2;

/// Loads a configuration and prints every problem and warning on standard error, one a line.
/// Nothing if it cannot be used.
std::optional<config::loaded> load_and_explain(const std::string& path);

}  // namespace kubelane::commands
