#include "line_client.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace kubelane::test {

line_client::line_client(int port, std::chrono::milliseconds limit, family over) {
  socket_ = ::socket(over == family::v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_usec = static_cast<int>(limit.count() % 1000) * 1000;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  v6.sin6_port = v4.sin_port;
  const int failed = over == family::v4
                         ? ::connect(socket_, reinterpret_cast<sockaddr*>(&v4), sizeof v4)
                         : ::connect(socket_, reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  if (failed == 0) return;
  ::close(socket_);
  socket_ = -1;
}

line_client::~line_client() {
  if (socket_ >= 0) ::close(socket_);
}

bool line_client::send(const std::string& bytes) {
  return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(bytes.size());
}

void line_client::end() {
  ::shutdown(socket_, SHUT_WR);
}

void line_client::reset() {
  const linger at_once{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(std::exchange(socket_, -1));
}

std::optional<std::string> line_client::read_line() {
  std::string line;
  for (char c = 0; ::recv(socket_, &c, 1, 0) == 1;) {
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
}

int line_client::read_bytes(int count) {
  std::array<char, 64 * 1024> buffer{};
  int got = 0;
  while (got < count) {
    const auto size = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (size <= 0) return got;
    got += static_cast<int>(size);
  }
  return got;
}

std::optional<std::string> line_client::ask(const std::string& line) {
  if (!connected() || !send(line + "\n")) return std::nullopt;
  return read_line();
}

line_client::state line_client::look() const {
  char c = 0;
  const auto size = ::recv(socket_, &c, 1, MSG_PEEK | MSG_DONTWAIT);
  if (size == 0) return state::ended;
  if (size > 0 || errno == EAGAIN) return state::open;
  return state::reset;
}

line_client::state line_client::wait_for_end(std::chrono::milliseconds limit) const {
  pollfd waiting{socket_, POLLIN, 0};
  ::poll(&waiting, 1, static_cast<int>(limit.count()));
  return look();
}

}  // namespace kubelane::test
