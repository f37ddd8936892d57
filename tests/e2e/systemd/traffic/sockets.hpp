#pragma once

#include "wire.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace traffic {

constexpr std::size_t turn = 64 << 10;  // bytes a connection may move before the next one's turn

inline std::int64_t now() {
  timespec at{};
  ::clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1'000'000'000LL + at.tv_nsec;
}

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline sockaddr_in loopback(std::uint32_t host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + host);
  return address;
}

inline void set_no_delay(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// Bytes are checked as they come; only their count is kept.
struct checked_bytes {
  std::uint64_t count = 0;
  std::uint64_t wrong = 0;

  /// Takes `bytes` as the next ones of `expected`.
  void take(const pattern& expected, std::span<const std::byte> bytes) {
    const auto want = expected.at(count, bytes.size());
    count += bytes.size();
    if (std::memcmp(want.data(), bytes.data(), bytes.size()) == 0) return;
    for (std::size_t i = 0; i < bytes.size(); ++i) wrong += want[i] != bytes[i];
  }
};

enum class outcome { moved, blocked, ended, failed };

/// Reads once; what came is `bytes`. `ended` is an EOF.
inline outcome read_some(int fd, std::span<std::byte> buffer, std::span<const std::byte>& bytes) {
  const auto n = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (n > 0) {
    bytes = buffer.first(static_cast<std::size_t>(n));
    return outcome::moved;
  }
  if (n == 0) return outcome::ended;
  return errno == EAGAIN ? outcome::blocked : outcome::failed;
}

/// Sends up to a turn of `source` from `sent` on, and counts it.
inline outcome send_some(int fd, const pattern& source, std::uint64_t& sent, std::size_t limit) {
  const auto bytes = source.at(sent, std::min(limit, turn));
  const auto n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN ? outcome::blocked : outcome::failed;
  sent += static_cast<std::uint64_t>(n);
  return outcome::moved;
}

class poller {
 public:
  poller() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {}

  void add(int fd, std::uint32_t events, void* tag) const {
    control(EPOLL_CTL_ADD, fd, events, tag);
  }
  void modify(int fd, std::uint32_t events, void* tag) const {
    control(EPOLL_CTL_MOD, fd, events, tag);
  }

  std::span<epoll_event> wait(int milliseconds) {
    const int n = ::epoll_wait(fd_, events_, std::size(events_), milliseconds);
    return std::span(events_).first(n < 0 ? 0 : static_cast<std::size_t>(n));
  }

 private:
  void control(int operation, int fd, std::uint32_t events, void* tag) const {
    epoll_event event{};
    event.events = events;
    event.data.ptr = tag;
    if (::epoll_ctl(fd_, operation, fd, &event) != 0) die("epoll_ctl");
  }

  int fd_;
  epoll_event events_[256];
};

}  // namespace traffic
