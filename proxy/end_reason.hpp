#pragma once

namespace kubelane::proxy {

/// Why a client's connection ended.
enum class end_reason {
  client_closed,        ///< both ways, the client first
  server_closed,        ///< both ways, the server first
  client_reset,         ///< passed on to the server
  server_reset,         ///< passed on to the client
  no_upstream,          ///< nobody to dial was left: reset
  drained,              ///< it left a server that is being drained
  reset_hung,           ///< its server is hung
  reset_dead,           ///< its server's host is dead
  unacknowledged,       ///< a peer acknowledged nothing for 30 s
  half_closed_timeout,  ///< closed on one side, silent on the other
  shutdown,             ///< kubelane stops
  error,                ///< another error of a socket: keep-alive lost, no route
};

const char* to_string(end_reason value) noexcept;  // "client_closed"

}  // namespace kubelane::proxy
