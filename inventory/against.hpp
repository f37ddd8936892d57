#pragma once

#include "config/config.hpp"
#include "inventory/cluster.hpp"

#include <string>
#include <vector>

namespace kubelane::inventory {

/// Says which upstreams a configuration lacks, or has too many, for an inventory. `file` is the
/// configuration's. A finding (`config-differs`) for each.
void check_against(const config::config& running, const std::string& file, model& in,
                   const cluster& seen, std::vector<finding>& findings);

}  // namespace kubelane::inventory
