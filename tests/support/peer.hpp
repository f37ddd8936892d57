#pragma once

#include "net/endpoint.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::test {

/// One end of a TCP connection in a test: non-blocking, so that a single thread can be client,
/// proxy and server in turn. What comes is collected when `pull` is called.
class peer {
 public:
  peer() = default;
  /// Takes a connected (or connecting) socket over.
  explicit peer(int fd) : fd_(fd) {}
  peer(peer&& other) noexcept;
  peer& operator=(peer&& other) noexcept;
  ~peer();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  /// Sends what fits; returns how much.
  std::size_t push(std::string_view bytes);
  /// Reads at most `most` bytes into `received`; true if anything happened.
  bool pull(std::size_t most = 1 << 20);
  /// Says FIN.
  void end();
  /// Closes, with a reset.
  void reset();
  void close();
  /// Sets SO_SNDBUF and SO_RCVBUF, halved by nobody.
  void set_buffers(int bytes);

  std::string received;
  bool saw_end = false;    ///< FIN came behind `received`
  bool saw_reset = false;  ///< a reset did

 private:
  int fd_ = -1;
};

/// Connects; the connection may still be in progress. `receive_buffer`: 0 for the default.
peer connect_to(const net::endpoint& where, int receive_buffer = 0);

/// A listening socket in a test.
class test_listener {
 public:
  /// Any port. `receive_buffer` is inherited by what it accepts.
  explicit test_listener(const char* address = "127.0.0.1", int backlog = 128,
                         int receive_buffer = 0);
  ~test_listener();
  test_listener(const test_listener&) = delete;
  test_listener& operator=(const test_listener&) = delete;

  const net::endpoint& address() const { return address_; }
  std::optional<peer> accept();
  /// Refuses from now on.
  void close();
  /// Fills the accept queue, so that further connects stay unanswered.
  void stuff();

 private:
  int fd_ = -1;
  net::endpoint address_;
  std::vector<peer> stuffing_;
};

/// `size` bytes that depend on `seed`, no two places alike.
std::string random_bytes(std::size_t size, unsigned seed);

/// A whole TLS ClientHello in one record.
std::string client_hello(std::size_t padding = 100);

}  // namespace kubelane::test
