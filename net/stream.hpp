#pragma once

#include "net/tls.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

namespace kubelane::net {

namespace asio = boost::asio;

/// What the kernel knows of a connection (TCP_INFO).
struct kernel_view {
  std::chrono::microseconds rtt{0};             ///< smoothed
  std::uint32_t unacknowledged = 0;             ///< segments in flight
  std::uint32_t retransmitted = 0;              ///< segments, since the connection began
  std::chrono::milliseconds since_last_ack{0};  ///< since the peer's kernel was last heard
};

/// One TCP connection, plain at first and TLS after a handshake. Owns its socket.
///
/// TLS runs on the descriptor itself, so a waiting connection tells an orderly end (close_notify),
/// a cut, data and mere session tickets apart. Operations only ever wait for the socket to be
/// ready: one that was cut short by a time-out has lost nothing and can be repeated. One reader and
/// one writer at a time; not both during a handshake. No operation has a limit of its own.
///
/// Errors: `asio::error::eof` for an orderly end (FIN on a plain stream, close_notify on TLS),
/// `stream_error`, or the system's.
class stream {
 public:
  using status = std::tuple<error_code>;
  using transferred = std::tuple<error_code, std::size_t>;

  explicit stream(asio::ip::tcp::socket socket);
  /// Closes in order, as `close` does.
  ~stream();
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;

  /// Starts TLS, or goes on with it after a time-out (the arguments must be the same). With
  /// `wrong_certificate` and `bad_validity` the handshake itself is complete, so that the peer
  /// sees an orderly end; nothing may be sent.
  asio::awaitable<status> client_handshake(tls_context context, tls_session session);
  asio::awaitable<status> server_handshake(tls_context context);

  /// At least one byte.
  asio::awaitable<transferred> read_some(asio::mutable_buffer into);
  /// All of it. After an error or a time-out, how much left is unknown.
  asio::awaitable<status> write(std::string_view bytes);
  /// Waits while nothing happens: no error means that unread data is there.
  asio::awaitable<status> watch();

  /// Sends close_notify if TLS is up and well, then closes. FIN, unless the peer's bytes were
  /// left unread.
  void close() noexcept;
  /// Closes with RST.
  void reset() noexcept;
  /// Closes with FIN alone, as the kernel does for a process that died.
  void drop() noexcept;
  /// Ends pending operations with `operation_aborted`.
  void cancel() noexcept;

  bool is_open() const noexcept;
  bool is_tls() const noexcept;   ///< a handshake began
  bool resumed() const noexcept;  ///< the handshake resumed a session
  /// The peer's leaf certificate's notAfter; nothing without one.
  std::optional<std::chrono::system_clock::time_point> peer_expiry() const;
  /// Common name of the peer's certificate; empty without one.
  std::string peer_common_name() const;
  /// The last `stream_error` in words: `certificate expired 2025-01-01T00:00:00Z`.
  const std::string& failure() const noexcept;
  std::uint64_t bytes_received() const noexcept;  ///< from the kernel, TLS records included
  std::optional<kernel_view> kernel() const noexcept;
  asio::ip::tcp::socket& socket() noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::net
