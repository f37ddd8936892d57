#pragma once

#include "inventory/json.hpp"
#include "inventory/value.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// A key that a mapping has twice; the last one counts.
struct repeated_yaml_key {
  std::string parent;  ///< key of the mapping itself in the one around it
  repeated_key what;
};

struct yaml_document {
  std::optional<value> root;  ///< null for an empty document; nothing if `error` says why
  std::vector<repeated_yaml_key> repeated;
  syntax_error error;
};

/// Reads a document as Ansible reads its YAML files: JSON first, then YAML 1.1 by libyaml, the
/// parser that Ansible uses, with anchors, aliases, merge keys and the tags `!vault` and `!unsafe`.
/// Exactly one document. Safe on hostile text: nesting and the number of values are limited.
yaml_document read_yaml(std::string_view text, int file);

}  // namespace kubelane::inventory
