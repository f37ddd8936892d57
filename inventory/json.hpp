#pragma once

#include "inventory/value.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace kubelane::inventory {

/// Why a document cannot be read, and on which line.
struct syntax_error {
  std::string message;
  int line = 0;
};

struct json_document {
  std::optional<value> root;  ///< nothing if `error` says why
  syntax_error error;
};

/// Reads JSON as Ansible does: NaN and Infinity are numbers, the last of equal keys counts, an
/// object with `__ansible_vault` is an encrypted value. Each value gets its line in `file`.
/// Safe on hostile text; nesting is limited.
json_document read_json(std::string_view text, int file);

/// One line of JSON, non-ASCII as it is. An encrypted value is `{"__ansible_vault": ...}`.
std::string write_json(const value& of);

/// In quotes, escaped as JSON.
std::string json_text(std::string_view text);

}  // namespace kubelane::inventory
