#pragma once

#include <string>
#include <string_view>

namespace kubelane::commands {

/// `text` without what nobody else may see: private keys in PEM, and as base64 however aligned and
/// wrapped; values that are called token, password, secret or key data; bearer tokens, signed ones
/// (JWT), bootstrap tokens; passwords in URLs; the values of a unit's environment.
std::string redact(std::string_view text);

}  // namespace kubelane::commands
