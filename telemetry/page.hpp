#pragma once

#include <string_view>

namespace kubelane::telemetry {

/// telemetry/page/index.html, as it was when this was built.
struct embedded_page {
  std::string_view html;
  /// The Content-Security-Policy that lets its own script and style run, by their hashes, and its
  /// own server be asked; nothing else.
  std::string_view policy;
};
embedded_page status_page() noexcept;

}  // namespace kubelane::telemetry
