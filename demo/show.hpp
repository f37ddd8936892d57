#pragma once

#include <iosfwd>

namespace kubelane::demo {

enum class screen {
  terminal,  ///< a live table that redraws itself
  plain,     ///< one line an event
};

/// Runs the whole demonstration; 0 if no request was lost, else 1.
/// Throws std::exception if a part of it cannot start.
int show(std::ostream& out, screen on);

}  // namespace kubelane::demo
