#pragma once

#include "sockets.hpp"
#include "window.hpp"

#include <deque>

namespace traffic {

/// One connection of the load client.
class lane {
 public:
  enum class role { stream, pinger, silent, answers, fresh };
  enum class state { connecting, open, refused, lost, finished };

  lane(role what, std::uint64_t id, std::uint16_t port, const poller& where);
  ~lane();
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  role what() const noexcept { return role_; }
  state is() const noexcept { return state_; }
  std::int64_t opened() const noexcept { return opened_; }

  /// Does what the socket is ready for.
  void on_events(std::uint32_t events, window& seen);
  /// Sends the ping that is due, if one is. Pings go at their times whatever happens to earlier
  /// ones.
  void tick(std::int64_t at, window& seen);
  /// No more requests. A stream ends its direction and reads the other to its end; a silent
  /// connection shows that it still works.
  void finish(window& seen);
  /// True once `finish` has shown what it had to, or never will.
  bool is_done() const noexcept;
  /// True if it was seen to work to its end.
  bool is_whole() const noexcept { return is_done() && state_ == whole_state(); }
  /// Adds what is under way to a window that ends.
  void close_window(std::int64_t at, window& seen) const;
  /// A line of JSON, after the end.
  void print_stream() const;

 private:
  state whole_state() const noexcept {
    return role_ == role::stream ? state::finished : state::open;
  }
  void greet(window& seen);
  bool receive(window& seen);
  void take(std::span<const std::byte> bytes, window& seen);
  void take_pong(std::span<const std::byte> bytes, window& seen);
  void take_answer(std::span<const std::byte> bytes, window& seen);
  bool send_stream(window& seen);
  bool send_ping(std::int64_t intended);
  bool ask();
  void end(state how, window& seen);

  role role_;
  std::uint64_t id_;
  const poller& poller_;
  int fd_;
  state state_ = state::connecting;
  std::int64_t opened_ = now();
  std::int64_t next_ping_ = 0;
  std::int64_t last_bytes_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t number_ = 0;  // of the last ping or request
  checked_bytes received_;
  std::deque<ping> awaited_;
  std::vector<std::byte> partial_;
  bool finishing_ = false;
};

}  // namespace traffic
