#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kubelane::inventory {

/// Whether a plain scalar looks like a date or time to YAML 1.1.
bool is_time(std::string_view text);

/// Such a text as Ansible writes it: `2026-08-01`, `2026-08-01T10:20:30.500000+02:00`; nothing if
/// there is no such day or hour.
std::optional<std::string> iso_time(std::string_view text);

}  // namespace kubelane::inventory
