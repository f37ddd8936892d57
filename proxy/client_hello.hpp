#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kubelane::proxy {

/// What a client's first bytes are; decides whether they may be sent to more than one server.
enum class flight {
  empty,
  partial_hello,  ///< so far a TLS ClientHello, not all of it
  hello,          ///< exactly one complete TLS ClientHello that announces no early data
  other,          ///< anything else: more bytes, another protocol, malformed, early data
};

/// The most that is looked at; a ClientHello that needs more is `other`.
inline constexpr std::size_t flight_limit = 16 * 1024;

/// Classifies the first bytes of a connection, TLS records included; the ClientHello may span
/// several records. A server that gets a ClientHello it does not finish has changed nothing, so it
/// is safe to send it again elsewhere; early data is a request, and is not.
/// Never asks for more than it was given. Source: RFC 8446 4.1.2, 5.1, 4.2.10.
flight classify_flight(std::span<const std::uint8_t> bytes);

}  // namespace kubelane::proxy
