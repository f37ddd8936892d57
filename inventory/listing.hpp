#pragma once

#include "inventory/model.hpp"
#include "inventory/reader.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kubelane::inventory {

/// Whether a text is the JSON of `ansible-inventory --list`: an object with `_meta.hostvars`.
bool is_listing(std::string_view text);

/// Reads such a JSON: Ansible resolved precedence, vaults and dynamic sources already.
std::optional<refusal> read_listing(std::string_view text, int file, model& into);

/// What `ansible-inventory --list` prints for a model, keys in order, one line for each value: to
/// compare with Ansible's own.
std::string write_listing(const model& of);

}  // namespace kubelane::inventory
