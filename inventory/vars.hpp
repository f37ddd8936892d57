#pragma once

#include "inventory/finding.hpp"
#include "inventory/model.hpp"

#include <string>
#include <vector>

namespace kubelane::inventory {

/// Reads `group_vars` and `host_vars` in a directory for every group and host of the model, as the
/// next source's: a file without an ending or in .yml, .yaml, .json; a folder, which comes first,
/// with all such files in it in order.
/// Source: Ansible 2.14's host_group_vars plugin.
void read_adjacent_vars(const std::string& directory, model& into, std::vector<finding>& findings);

/// The same for one group that was added later, in every directory already read.
void read_group_vars_of(int group_index, model& into, std::vector<finding>& findings);

}  // namespace kubelane::inventory
