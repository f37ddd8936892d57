// A relay that does nothing else: no health, no balance, no counts, no care for what goes wrong. It
// shows what a proxy's work costs at least, in three ways to move a message.
//
//   bare_relay splice|copy|peek PORT SERVER_PORT
//
// splice: socket to pipe to socket. copy: recv and send. peek: recv without taking, send, then take
// what was sent, so that a message is always in a socket.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t chunk = 64 * 1024;
constexpr std::size_t copied = 8 * 1024;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct end {
  int fd = -1;
  end* other = nullptr;
  std::array<int, 2> pipe = {-1, -1};
};

// The library's are points of cancellation, which a relay of one thread need not pay for either.
ssize_t splice_now(int from, int to, std::size_t size) {
  return syscall(SYS_splice, from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

ssize_t by_splice(const end& from) {
  const auto size = splice_now(from.fd, from.pipe[1], chunk);
  if (size > 0) splice_now(from.pipe[0], from.other->fd, static_cast<std::size_t>(size));
  return size;
}

ssize_t by_copy(const end& from) {
  std::array<char, copied> bytes;
  const auto size = recv(from.fd, bytes.data(), bytes.size(), 0);
  if (size > 0) send(from.other->fd, bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
  return size;
}

ssize_t by_peek(const end& from) {
  std::array<char, copied> bytes;
  const auto size = recv(from.fd, bytes.data(), bytes.size(), MSG_PEEK);
  if (size <= 0) return size;
  const auto sent =
      send(from.other->fd, bytes.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent > 0) recv(from.fd, nullptr, static_cast<std::size_t>(sent), MSG_TRUNC);
  return size;
}

sockaddr_in local(std::uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return where;
}

class relay {
 public:
  relay(std::string_view way, std::uint16_t port, std::uint16_t server_port);
  void run();

 private:
  void accept_all();
  void begin(int client);
  void watch(end& at, std::uint32_t events) const;
  void close_both(end& at);

  ssize_t (*move_)(const end&);
  bool pipes_;
  sockaddr_in server_;
  end listener_;
  int epoll_;
  std::vector<end*> over_;  // until the turn ends
};

relay::relay(std::string_view way, std::uint16_t port, std::uint16_t server_port)
    : move_(way == "splice" ? by_splice
            : way == "peek" ? by_peek
                            : by_copy),
      pipes_(way == "splice"),
      server_(local(server_port)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  listener_.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(listener_.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // inherited
  const auto where = local(port);
  if (bind(listener_.fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) die("bind");
  if (listen(listener_.fd, 4096) != 0) die("listen");
  watch(listener_, EPOLLIN);
}

void relay::watch(end& at, std::uint32_t events) const {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = &at;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, at.fd, &wanted) != 0) die("epoll_ctl");
}

void relay::accept_all() {
  for (;;) {
    const int client = accept4(listener_.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    begin(client);
  }
}

void relay::begin(int client) {
  const int on = 1;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(server, reinterpret_cast<const sockaddr*>(&server_), sizeof server_) != 0 &&
      errno != EINPROGRESS)
    die("connect");
  auto* const near = new end{.fd = client};
  auto* const far = new end{.fd = server, .other = near};
  near->other = far;
  for (auto* const each : {near, far}) {
    if (pipes_ && pipe2(each->pipe.data(), O_NONBLOCK | O_CLOEXEC) != 0) die("pipe2");
    watch(*each, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  }
}

void relay::close_both(end& at) {
  for (auto* const each : {&at, at.other}) {
    close(each->fd);
    each->fd = -1;
    if (pipes_) std::for_each(each->pipe.begin(), each->pipe.end(), close);
    over_.push_back(each);
  }
}

void relay::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int count = epoll_wait(epoll_, events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const auto& seen = events[static_cast<std::size_t>(i)];
      auto& at = *static_cast<end*>(seen.data.ptr);
      if (&at == &listener_) {
        accept_all();
      } else if (at.fd >= 0 && (seen.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) {
        const auto size = move_(at);
        if (size == 0 || (size < 0 && errno != EAGAIN)) close_both(at);
      }
    }
    for (auto* const each : over_) delete each;
    over_.clear();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bare_relay splice|copy|peek PORT SERVER_PORT\n", stderr);
    return 64;
  }
  std::signal(SIGPIPE, SIG_IGN);
  relay(argv[1], static_cast<std::uint16_t>(std::atoi(argv[2])),
        static_cast<std::uint16_t>(std::atoi(argv[3])))
      .run();
}
