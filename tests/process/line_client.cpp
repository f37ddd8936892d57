#include "line_client.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>

namespace kubelane::test {

line_client::line_client(int port, std::chrono::milliseconds limit) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval time{};
  time.tv_sec = limit.count() / 1000;
  time.tv_usec = static_cast<int>(limit.count() % 1000) * 1000;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
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

std::optional<std::string> line_client::read_line() {
  std::string line;
  for (char c = 0; ::recv(socket_, &c, 1, 0) == 1;) {
    if (c == '\n') return line;
    line += c;
  }
  return std::nullopt;
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
