#include "tests/support/peer.hpp"

#include "net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <stdexcept>
#include <utility>

namespace kubelane::test {
namespace {

void set_number(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

std::string number(std::size_t value, int width) {
  std::string result;
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
    result += static_cast<char>(value >> shift);
  return result;
}

std::string vector_of(const std::string& content, int width) {
  return number(content.size(), width) + content;
}

}  // namespace

peer::peer(peer&& other) noexcept
    : received(std::move(other.received)),
      saw_end(other.saw_end),
      saw_reset(other.saw_reset),
      fd_(std::exchange(other.fd_, -1)) {}

peer& peer::operator=(peer&& other) noexcept {
  close();
  received = std::move(other.received);
  saw_end = other.saw_end;
  saw_reset = other.saw_reset;
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

peer::~peer() {
  close();
}

std::size_t peer::push(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const auto count = send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0 && (errno == ECONNRESET || errno == EPIPE)) saw_reset = true;
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

bool peer::pull(std::size_t most) {
  if (!is_open() || saw_end || saw_reset) return false;
  std::string bytes(std::min<std::size_t>(most, 64 * 1024), '\0');
  const auto count = recv(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (count > 0) {
    received.append(bytes, 0, static_cast<std::size_t>(count));
    return true;
  }
  saw_end = count == 0;
  saw_reset = count < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN;
  return saw_end || saw_reset;
}

void peer::end() {
  shutdown(fd_, SHUT_WR);
}

void peer::reset() {
  const linger now{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void peer::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void peer::set_buffers(int bytes) {
  set_number(fd_, SOL_SOCKET, SO_SNDBUF, bytes);
  set_number(fd_, SOL_SOCKET, SO_RCVBUF, bytes);
}

peer connect_to(const net::endpoint& where, int receive_buffer) {
  const int fd = net::open_tcp(where);
  net::send_at_once(fd);
  if (receive_buffer > 0) set_number(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
  const auto address = net::to_address(where);
  if (connect(fd, address.get(), address.size) != 0 && errno != EINPROGRESS) {
    ::close(fd);
    throw std::runtime_error("connect: " + std::to_string(errno));
  }
  return peer(fd);
}

test_listener::test_listener(const char* address, int backlog, int receive_buffer) {
  const net::endpoint where(boost::asio::ip::make_address(address), 0);
  fd_ = net::open_tcp(where);
  set_number(fd_, SOL_SOCKET, SO_REUSEADDR, 1);
  net::send_at_once(fd_);
  if (receive_buffer > 0) set_number(fd_, SOL_SOCKET, SO_RCVBUF, receive_buffer);
  const auto bound = net::to_address(where);
  if (bind(fd_, bound.get(), bound.size) != 0 || listen(fd_, backlog) != 0)
    throw std::runtime_error("listen: " + std::to_string(errno));
  address_ = *net::local_of(fd_);
}

test_listener::~test_listener() {
  close();
}

std::optional<peer> test_listener::accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return std::nullopt;
  return peer(fd);
}

void test_listener::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void test_listener::stuff() {
  listen(fd_, 0);
  for (int i = 0; i < 4; ++i) stuffing_.push_back(connect_to(address_));
}

std::string random_bytes(std::size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string result;
  result.reserve(size + 8);
  while (result.size() < size) result += number(random(), 8);
  result.resize(size);
  return result;
}

std::string client_hello(std::size_t padding) {
  const auto extension = number(21, 2) + vector_of(std::string(padding, '\0'), 2);
  const auto body = number(0x0303, 2) + std::string(32, 'r') + vector_of(std::string(32, 's'), 1) +
                    vector_of(number(0x1301, 2), 2) + vector_of(std::string(1, '\0'), 1) +
                    vector_of(extension, 2);
  return number(22, 1) + number(0x0301, 2) + vector_of(number(1, 1) + vector_of(body, 3), 2);
}

}  // namespace kubelane::test
