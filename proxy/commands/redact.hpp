#pragma once

#include <string>
#include <string_view>

namespace kubelane::commands {

/// `text` without what nobody else may see: private keys in PEM, and as base64 however aligned and
/// wrapped; values that are called token, password, secret, key data or authorization, over as many
/// lines as they take (rather too much goes than too little); bearer tokens, signed ones
/// (JWT), bootstrap tokens; passwords in URLs; the environment and the credentials in a unit.
std::string redact(std::string_view text);

}  // namespace kubelane::commands
