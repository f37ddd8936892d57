#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace kubelane::test {

/// A client at full speed: sends bytes, each place's value known, as fast as they go and checks
/// that the same come back. On a thread of its own, until `stop` or its connection ends.
class echo_client {
 public:
  /// Connects to a fake API server through `port` of the loopback.
  explicit echo_client(int port);
  ~echo_client();
  echo_client(const echo_client&) = delete;
  echo_client& operator=(const echo_client&) = delete;

  /// Says FIN; waits until everything has come back. True if nothing was lost or changed, and the
  /// end came behind the last byte.
  bool finish();
  std::uint64_t returned() const noexcept { return returned_; }
  /// A byte was wrong, or the connection ended before its time.
  bool is_broken() const noexcept { return broken_; }

 private:
  void run();
  bool send_some();
  bool receive_some();

  int socket_ = -1;
  std::uint64_t sent_ = 0;
  std::atomic<std::uint64_t> returned_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> broken_ = false;
  bool told_end_ = false;
  bool saw_end_ = false;
  std::thread thread_;
};

}  // namespace kubelane::test
