#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace kubelane::net {

/// What the kernel knows about a TCP connection (TCP_INFO).
struct socket_facts {
  std::uint32_t unacknowledged_segments;  ///< sent, not acknowledged
  std::uint32_t unsent_bytes;             ///< kept back: the peer's window is closed, or congestion
  std::uint32_t retransmits;  ///< of the oldest segment, in a row; 0 after an acknowledgement
  std::uint32_t probes;       ///< of a closed window, in a row; 0 after an acknowledgement
  std::chrono::milliseconds since_acknowledgement;  ///< the last one, of anything
};
/// Nothing if `fd` is no TCP socket.
std::optional<socket_facts> facts_of(int fd);

}  // namespace kubelane::net
