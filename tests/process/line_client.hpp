#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace kubelane::test {

/// A blocking TCP client of the fake API servers' plain text protocol, with a limit on every call.
class line_client {
 public:
  enum class family { v4, v6 };
  /// Connects to the loopback; `connected` tells whether that worked.
  explicit line_client(int port, std::chrono::milliseconds limit = std::chrono::seconds(10),
                       family over = family::v4);
  ~line_client();
  line_client(line_client&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  line_client(const line_client&) = delete;

  bool connected() const noexcept { return socket_ >= 0; }
  /// Sends a line and reads one; nothing on end, reset or time-out.
  std::optional<std::string> ask(const std::string& line);
  bool send(const std::string& bytes);
  std::optional<std::string> read_line();
  /// Says FIN.
  void end();
  /// Closes, with a reset.
  void reset();

  /// Reads and drops up to `count` bytes; how many came.
  int read_bytes(int count);

  enum class state { open, ended, reset };
  /// Looks without waiting.
  state look() const;
  /// Waits until it is no longer open.
  state wait_for_end(std::chrono::milliseconds limit) const;

 private:
  int socket_ = -1;
};

}  // namespace kubelane::test
