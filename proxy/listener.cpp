#include "proxy/listener.hpp"

#include "net/socket.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr int backlog = 4096;
constexpr int largest_burst = 64;
constexpr char loopback_device[] = "lo";
// A client that vanished without a word must not count for ever. On this host the kernel tells.
constexpr net::keep_alive remote_client_keep_alive{.idle = 60s, .interval = 10s, .count = 3};

void set_flag(int fd, int level, int name) {
  const int on = 1;
  setsockopt(fd, level, name, &on, sizeof on);
}

// Unprivileged since Linux 5.7, but only once: EPERM on a socket that is bound already.
void bind_to_loopback_device(int fd) {
  char bound[IFNAMSIZ] = "";
  socklen_t size = sizeof bound;
  if (getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, bound, &size) == 0 && bound[0] != '\0') return;
  setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, loopback_device, sizeof loopback_device);
}

int bind_to(int fd, const net::endpoint& where) {
  set_flag(fd, SOL_SOCKET, SO_REUSEADDR);
  if (where.address().is_v6()) set_flag(fd, IPPROTO_IPV6, IPV6_V6ONLY);
  if (net::is_loopback(where)) bind_to_loopback_device(fd);
  const auto address = net::to_address(where);
  return bind(fd, address.get(), address.size) == 0 ? 0 : errno;
}

boost::system::result<int> open_bound(const net::endpoint& where) {
  const int fd = net::open_tcp(where);
  const int error = fd < 0 ? errno : bind_to(fd, where);
  if (error == 0) return fd;
  if (fd >= 0) close(fd);
  return boost::system::error_code(error, boost::system::system_category());
}

void start_listening(boost::system::result<int>& socket) {
  if (!socket || listen(*socket, backlog) == 0) return;
  const int error = errno;
  close(*socket);
  socket = boost::system::error_code(error, boost::system::system_category());
}

bool is_in_use(const boost::system::result<int>& socket) {
  return !socket && socket.error() == boost::system::errc::address_in_use;
}

// The client has left, or may not connect: accept(2) says that its errors are then those of the
// network. Anything else is this process' own trouble and would come again at once.
bool is_of_one_client(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case ECONNRESET:
    case EPERM:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

boost::system::result<int> open_listener(const net::endpoint& where) {
  auto socket = open_bound(where);
  start_listening(socket);
  return socket;
}

opened_together open_together(const std::vector<net::endpoint>& addresses) {
  opened_together result;
  const auto find_busy = [&] {
    const auto at = std::find_if(result.sockets.begin(), result.sockets.end(), is_in_use);
    if (at != result.sockets.end())
      result.busy = addresses[static_cast<std::size_t>(at - result.sockets.begin())];
  };
  // A bound socket refuses clients until it listens, as if it were not there.
  for (const auto& each : addresses) result.sockets.push_back(open_bound(each));
  find_busy();
  if (!result.busy) {
    for (auto& each : result.sockets) start_listening(each);
    find_busy();
  }
  if (!result.busy) return result;
  for (const auto& each : result.sockets)
    if (each) close(*each);
  result.sockets.clear();
  return result;
}

listener::listener(net::reactor& loop, int listening, net::watched_fd::copies elsewhere,
                   const seam& to)
    : loop_(loop),
      to_(to),
      address_(net::local_of(listening).value_or(net::endpoint{})),
      is_loopback_(net::is_loopback(address_)) {
  fcntl(listening, F_SETFL, fcntl(listening, F_GETFL) | O_NONBLOCK);
  if (is_loopback_) bind_to_loopback_device(listening);
  net::send_at_once(listening);
  if (!is_loopback_) net::keep_alive_on(listening, remote_client_keep_alive);
  // Level-triggered: then one accept a client is enough, with none in vain to find the end.
  socket_ = loop_.watch(listening, EPOLLIN, on_event, this);
  if (socket_) socket_.has(elsewhere);
}

void listener::pause() {
  if (paused_ || !socket_) return;
  paused_ = true;
  socket_.change(0);
}

void listener::resume() {
  if (!paused_) return;
  paused_ = false;
  socket_.change(EPOLLIN);
}

void listener::on_event(void* self, std::uint32_t) {
  auto& it = *static_cast<listener*>(self);
  const auto turn = it.loop_.turn_number();
  // One is enough unless more waited last turn: then twice as many.
  it.burst_ = turn - it.filled_turn_ > 1 ? 1 : std::min(2 * it.burst_, largest_burst);
  it.accept_some();
}

void listener::accept_waiting() {
  burst_ = backlog;
  accept_some();
}

void listener::accept_some() {
  for (int taken = 0; taken < burst_ && !paused_; ++taken) {
    if (!to_.may_accept(to_.owner)) return;
    const int client = accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
      to_.accepted(to_.owner, client, *this);
      continue;
    }
    if (errno == EAGAIN) return;
    if (!is_of_one_client(errno)) return to_.cannot_accept(to_.owner, errno);
  }
  filled_turn_ = loop_.turn_number();
}

}  // namespace kubelane::proxy
