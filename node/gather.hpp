#pragma once

#include "config/config.hpp"
#include "node/facts.hpp"

#include <string>

namespace kubelane::node {

/// Reads what a node's files say, below `root` (empty: this very node). `settings` is kubelane's
/// configuration, or its defaults if there is a problem with it. Of another root, processes and
/// listeners are known as far as there is a /proc in it. Blocks for as long as reading takes.
facts gather(const std::string& root, const config::config& settings);

}  // namespace kubelane::node
