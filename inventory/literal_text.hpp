#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kubelane::inventory {

/// Python string literals standing next to each other, put together, and how much they took.
struct literal_text {
  std::string text;
  std::size_t size = 0;
};

/// Reads the string literals a text starts with, prefixes (`r`, `u`, `b`) and escapes included;
/// nothing if it starts with none, or one is broken.
std::optional<literal_text> read_literal_text(std::string_view text);

}  // namespace kubelane::inventory
