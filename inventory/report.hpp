#pragma once

#include "inventory/checks.hpp"

#include <string>
#include <vector>

namespace kubelane::inventory {

/// What `inventory check --format json` prints.
std::string report_json(const model& in, const verdict& what);

/// What `inventory check` prints: the cluster as kubespray sees it, then each finding as
/// `FILE:LINE: severity: rule: message`. `accepted` rules are marked.
std::string report_text(const model& in, const verdict& what,
                        const std::vector<std::string>& accepted);

/// Whether a finding is an error that was not accepted.
bool is_refused(const verdict& what, const std::vector<std::string>& accepted);

std::string_view to_string(severity how);

/// `["a", "b"]`
std::string json_list(const std::vector<std::string>& names);

}  // namespace kubelane::inventory
