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

/// What a TCP connection has moved, at one moment.
struct socket_counts {
  bool is_closed;          ///< it is over in both directions, by an end or an error
  std::uint64_t received;  ///< bytes that came, read or not; the peer's end counts as one
  std::uint64_t written;   ///< bytes that were given to the kernel to be sent
};
/// Nothing if `fd` is no TCP socket. `written` is right until our own end was sent.
std::optional<socket_counts> counts_of(int fd);

/// Nothing was acknowledged for `limit`, though for so long there was something to acknowledge
/// (`owed_for`). A closed window alone is no silence: a peer that does not read acknowledges the
/// probes of its window. But these get rare, up to two minutes apart, so that time alone does not
/// tell: two of them, or two retransmissions, must have been in vain.
/// Pure.
constexpr bool is_silent(const socket_facts& facts, std::chrono::milliseconds owed_for,
                         std::chrono::milliseconds limit) {
  const bool owes = facts.unacknowledged_segments > 0 || facts.unsent_bytes > 0;
  const bool tried = facts.retransmits >= 2 || facts.probes >= 2;
  return owes && tried && owed_for >= limit && facts.since_acknowledgement >= limit;
}

}  // namespace kubelane::net
