#pragma once

#include "inventory/value.hpp"

#include <optional>
#include <string_view>

namespace kubelane::inventory {

/// What a plain (unquoted) scalar is in YAML 1.1: null, a boolean (`yes`, `on`), an integer
/// (`0b11`, `017`, `0x1f`, `1_000`, `1:30`), a real, a date or time (as its ISO 8601 text), or
/// text. Nothing for what Ansible refuses: a lone `=`, a date that does not exist. Source: PyYAML
/// 6's resolver and safe constructor.
std::optional<value> resolve_plain(std::string_view text, place at);

/// The same for a scalar with a tag: `int`, `float`, `bool`, `null`, `timestamp`, after `!!`.
/// Nothing if the text does not fit the tag, or the tag is another.
std::optional<value> resolve_tagged(std::string_view tag, std::string_view text, place at);

}  // namespace kubelane::inventory
