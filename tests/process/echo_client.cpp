#include "echo_client.hpp"

#include "demo/apiserver.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>

namespace kubelane::test {
namespace {

constexpr std::size_t period = std::size_t{1} << 18;
constexpr std::string_view command = "echo\n";

// The stream repeats this; a place that is off by any amount but the period shows.
const std::string& stream() {
  static const std::string once = demo::pattern(0, period);
  static const std::string bytes = once + once;
  return bytes;
}

}  // namespace

echo_client::echo_client(int port) {
  stream();
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  broken_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
            ::send(socket_, command.data(), command.size(), MSG_NOSIGNAL) !=
                static_cast<ssize_t>(command.size());
  ::fcntl(socket_, F_SETFL, O_NONBLOCK);
  thread_ = std::thread([this] { run(); });
}

echo_client::~echo_client() {
  stopping_ = true;
  ::shutdown(socket_, SHUT_RDWR);
  thread_.join();
  ::close(socket_);
}

bool echo_client::finish() {
  stopping_ = true;
  thread_.join();
  thread_ = std::thread([] {});
  return !broken_ && saw_end_ && returned_ == sent_;
}

void echo_client::run() {
  while (!broken_ && !saw_end_) {
    const bool sends = !stopping_;
    if (!sends && !told_end_) {
      told_end_ = true;
      ::shutdown(socket_, SHUT_WR);
    }
    pollfd waiting{socket_, static_cast<short>(POLLIN | (sends ? POLLOUT : 0)), 0};
    if (::poll(&waiting, 1, 20'000) <= 0) broken_ = true;
    if (sends && (waiting.revents & POLLOUT) != 0 && !send_some()) broken_ = true;
    if (!receive_some()) broken_ = true;
  }
}

bool echo_client::send_some() {
  const auto part = std::string_view(stream()).substr(sent_ % period, 64 * 1024);
  const auto count = ::send(socket_, part.data(), part.size(), MSG_NOSIGNAL);
  if (count > 0) sent_ += static_cast<std::uint64_t>(count);
  return count > 0 || errno == EAGAIN;
}

bool echo_client::receive_some() {
  std::array<char, 64 * 1024> buffer;
  const auto count = ::recv(socket_, buffer.data(), buffer.size(), 0);
  if (count < 0) return errno == EAGAIN;
  if (count == 0) {
    saw_end_ = true;
    return told_end_ && returned_ == sent_;
  }
  const auto size = static_cast<std::size_t>(count);
  const bool right = std::string_view(buffer.data(), size) ==
                     std::string_view(stream()).substr(returned_ % period, size);
  returned_ += size;
  return right;
}

}  // namespace kubelane::test
