#include "net/socket.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kubelane::net {
namespace {

namespace ip = boost::asio::ip;

void set_option(int fd, int level, int name, int value) {
  setsockopt(fd, level, name, &value, sizeof value);
}

}  // namespace

socket_address to_address(const endpoint& value) {
  socket_address result;
  if (value.address().is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(value.port());
    v4.sin_addr.s_addr = htonl(value.address().to_v4().to_uint());
    std::memcpy(&result.storage, &v4, sizeof v4);
    result.size = sizeof v4;
    return result;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(value.port());
  const auto address = value.address().to_v6();
  const auto bytes = address.to_bytes();
  std::copy(bytes.begin(), bytes.end(), v6.sin6_addr.s6_addr);
  v6.sin6_scope_id = static_cast<std::uint32_t>(address.scope_id());
  std::memcpy(&result.storage, &v6, sizeof v6);
  result.size = sizeof v6;
  return result;
}

std::optional<endpoint> to_endpoint(const sockaddr_storage& storage) {
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof v4);
    return endpoint(ip::address_v4(ntohl(v4.sin_addr.s_addr)), ntohs(v4.sin_port));
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &storage, sizeof v6);
  ip::address_v6::bytes_type bytes;
  std::copy(std::begin(v6.sin6_addr.s6_addr), std::end(v6.sin6_addr.s6_addr), bytes.begin());
  return endpoint(ip::address_v6(bytes, v6.sin6_scope_id), ntohs(v6.sin6_port));
}

std::optional<endpoint> peer_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  return to_endpoint(storage);
}

std::optional<endpoint> local_of(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  return to_endpoint(storage);
}

int open_tcp(const endpoint& towards) {
  const int family = towards.address().is_v4() ? AF_INET : AF_INET6;
  return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void send_at_once(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

void keep_queue_short(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 128 * 1024);
}

void keep_alive_on(int fd, const keep_alive& how) {
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(how.idle.count()));
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(how.interval.count()));
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, how.count);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int take_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::size_t unacknowledged_bytes(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

std::uint64_t inode_of(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

std::size_t unread_bytes(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCINQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

bool discard_unread(int fd) {
  constexpr std::size_t at_most = std::size_t{1} << 30;
  for (int tries = 0; tries < 16; ++tries) {
    const auto count = recv(fd, nullptr, at_most, MSG_TRUNC | MSG_DONTWAIT);
    if (count > 0 || (count < 0 && errno == EINTR)) continue;
    return count == 0 || errno != EAGAIN;
  }
  return false;
}

void reset(int fd) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  connect(fd, &nobody, sizeof nobody);
}

}  // namespace kubelane::net
