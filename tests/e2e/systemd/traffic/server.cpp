// The API servers' place: echoes pings, sends and checks streams, sends answers. Prints one line of
// JSON for each stream that ended, with what it had received of it.

#include "server.hpp"

#include "sockets.hpp"

#include <csignal>
#include <memory>
#include <set>
#include <vector>

namespace traffic {
namespace {

struct peer {
  explicit peer(int socket) : fd(socket) {}

  int fd;
  bool greeted = false;
  greeting hello;
  checked_bytes received;
  std::uint64_t sent = 0;          // of the stream, or of the answer under way
  std::uint64_t answering = 0;     // number of the answer under way, from 1
  std::vector<std::byte> unsent;   // echo
  std::vector<std::byte> partial;  // of a greeting or request
  bool listens_for_room = false;
};

class server {
 public:
  explicit server(std::uint16_t port) {
    for (const std::uint32_t host : {2, 3}) listen_on(loopback(host, port));
  }

  void run() {
    for (;;)
      for (const auto& event : poller_.wait(-1)) {
        auto* one = static_cast<peer*>(event.data.ptr);
        if (listeners_.contains(one))
          accept_from(one->fd);
        else if (!serve(*one, event.events))
          end(one);
      }
  }

 private:
  void listen_on(const sockaddr_in& address) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) die("bind");
    if (::listen(fd, 4096) != 0) die("listen");
    auto* one = new peer(fd);
    listeners_.insert(one);
    poller_.add(fd, EPOLLIN, one);
  }

  void accept_from(int listener) {
    for (;;) {
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      set_no_delay(fd);
      poller_.add(fd, EPOLLIN, new peer(fd));
    }
  }

  bool serve(peer& one, std::uint32_t events) {
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
      std::span<const std::byte> bytes;
      const auto how = read_some(one.fd, buffer_, bytes);
      if (how == outcome::ended || how == outcome::failed) return false;
      if (how == outcome::moved && !take(one, bytes)) return false;
    }
    return give(one);
  }

  bool take(peer& one, std::span<const std::byte> bytes) {
    if (!one.greeted) {
      one.partial.insert(one.partial.end(), bytes.begin(), bytes.end());
      if (one.partial.size() < sizeof one.hello) return true;
      std::memcpy(&one.hello, one.partial.data(), sizeof one.hello);
      if (one.hello.magic != greeting{}.magic) return report_bad_greeting();
      one.greeted = true;
      const std::vector<std::byte> rest(one.partial.begin() + sizeof one.hello, one.partial.end());
      one.partial.clear();
      return take(one, rest);
    }
    switch (one.hello.what) {
      case kind::stream:
        one.received.take(upwards(one.hello.id), bytes);
        return true;
      case kind::ping:
        one.unsent.insert(one.unsent.end(), bytes.begin(), bytes.end());
        return true;
      case kind::answer:
        return take_requests(one, bytes);
    }
    return false;
  }

  static bool report_bad_greeting() {
    std::puts(R"({"end":"bad greeting","wrong":1})");
    return false;
  }

  static bool take_requests(peer& one, std::span<const std::byte> bytes) {
    one.partial.insert(one.partial.end(), bytes.begin(), bytes.end());
    if (one.partial.size() < sizeof(request)) return true;
    request next;
    std::memcpy(&next, one.partial.data(), sizeof next);
    one.partial.clear();
    one.answering = next.number;
    one.sent = 0;
    return true;
  }

  bool give(peer& one) {
    const auto how = one.greeted ? give_some(one) : outcome::blocked;
    if (how == outcome::failed) return false;
    const bool more = one.greeted && wants_to_give(one);
    if (more != one.listens_for_room) {
      poller_.modify(one.fd, more ? EPOLLIN | EPOLLOUT : EPOLLIN, &one);
      one.listens_for_room = more;
    }
    return true;
  }

  static bool wants_to_give(const peer& one) {
    switch (one.hello.what) {
      case kind::stream:
        return true;
      case kind::ping:
        return !one.unsent.empty();
      case kind::answer:
        return one.answering != 0 && one.sent < answer_size;
    }
    return false;
  }

  static outcome give_some(peer& one) {
    if (!wants_to_give(one)) return outcome::blocked;
    if (one.hello.what == kind::stream)
      return send_some(one.fd, downwards(one.hello.id), one.sent, turn);
    if (one.hello.what == kind::answer)
      return send_some(one.fd, of_answer(one.hello.id, one.answering), one.sent,
                       answer_size - one.sent);
    const auto n = ::send(one.fd, one.unsent.data(), one.unsent.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN ? outcome::blocked : outcome::failed;
    one.unsent.erase(one.unsent.begin(), one.unsent.begin() + n);
    return outcome::moved;
  }

  static void end(peer* one) {
    if (one->greeted && one->hello.what == kind::stream) {
      std::printf("{\"id\":%llu,\"received\":%llu,\"wrong\":%llu,\"sent\":%llu}\n",
                  static_cast<unsigned long long>(one->hello.id),
                  static_cast<unsigned long long>(one->received.count),
                  static_cast<unsigned long long>(one->received.wrong),
                  static_cast<unsigned long long>(one->sent));
      std::fflush(stdout);
    }
    ::close(one->fd);
    delete one;
  }

  poller poller_;
  std::set<peer*> listeners_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(turn);
};

}  // namespace

void serve(std::uint16_t port) {
  server(port).run();
}

}  // namespace traffic
