#pragma once

#include <cstdint>

namespace traffic {

/// Serves on 127.0.0.2 and 127.0.0.3 until killed.
void serve(std::uint16_t port);

}  // namespace traffic
