#pragma once

#include <string>
#include <string_view>

namespace kubelane::test {

/// Padded, on one line.
inline std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  unsigned value = 0;
  int bits = 0;
  for (const char byte : bytes) {
    value = value << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 6; bits -= 6) result += digits[value >> (bits - 6) & 63U];
  }
  if (bits > 0) result += digits[value << (6 - bits) & 63U];
  while (result.size() % 4 != 0) result += '=';
  return result;
}

}  // namespace kubelane::test
