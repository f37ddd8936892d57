#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::commands {

enum class colour { on, off };

/// Cells of one line.
using row = std::vector<std::string>;

/// Columns side by side, each as wide as its widest cell; `state_column` is painted by the state
/// that its cells name, except in the first row.
std::string aligned(const std::vector<row>& rows, colour with, std::size_t state_column);

/// What others have said, made safe for a terminal: control characters become `?`.
std::string printable(std::string text);

/// `2026-01-01T10:20:30.123Z` -> `2026-01-01 10:20:30`; anything else stays.
std::string short_time(std::string time);

/// Cut to a screen: at most `lines` lines of at most `columns` characters, the last of which is an
/// ellipsis where something is missing. Colours take no room, and end with their line. ANSI colours
/// and UTF-8 are understood.
std::string fit(std::string_view text, std::size_t columns, std::size_t lines);

}  // namespace kubelane::commands
