#pragma once

#include "inventory/value.hpp"

#include <optional>
#include <string_view>

namespace kubelane::inventory {

/// What an INI inventory makes of a value: a Python literal (number, string, list, tuple, set,
/// dict, True, False, None) becomes that; nothing if it is none, and then the text stays as it is.
/// `8080 # note` is the number 8080, for `#` starts a comment in Python; `010`, `true`, `10.0.0.1`
/// are text. Complex numbers and `\N{...}` escapes are left as text.
/// Source: Python's ast.literal_eval, as Ansible 2.14 calls it.
std::optional<value> parse_literal(std::string_view text, place at);

}  // namespace kubelane::inventory
