// An open-loop HTTP client: requests by schedule, each timed from when it was due, so that a stall
// is seen as long as it lasts by everything that should have been sent meanwhile.
//
//   paced PORT RATE CONNECTIONS SECONDS
//
// Prints the number of answers, and p50, p99 and the longest time in microseconds.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr char request[] = "GET /small HTTP/1.1\r\nHost: bench\r\n\r\n";
constexpr std::size_t body_size = 1024;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

struct connection {
  int fd = -1;
  std::deque<clock_type::time_point> due = {};  // the first was sent
  std::string answer = {};
};

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  if (connect(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) die("connect");
  return fd;
}

class client {
 public:
  client(std::uint16_t port, std::size_t connections);
  void run(double rate, std::chrono::seconds duration);
  void print();

 private:
  static void send_request(const connection& on);
  void send_due(clock_type::time_point now);
  void wait(clock_type::time_point until);
  void receive(connection& on);

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::vector<connection> connections_;
  clock_type::time_point start_;
  std::chrono::nanoseconds period_{};
  std::size_t next_ = 0;
  std::vector<double> times_;  // microseconds
};

client::client(std::uint16_t port, std::size_t connections) : connections_(connections) {
  for (auto& each : connections_) {
    each.fd = connect_to(port);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    wanted.data.ptr = &each;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, each.fd, &wanted);
  }
}

void client::run(double rate, std::chrono::seconds duration) {
  period_ = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / rate));
  start_ = clock_type::now();
  const auto end = start_ + duration;
  for (auto now = start_; now < end; now = clock_type::now()) {
    send_due(now);
    wait(start_ + static_cast<std::int64_t>(next_) * period_);
  }
  const auto waiting = [](const connection& each) { return !each.due.empty(); };
  while (std::any_of(connections_.begin(), connections_.end(), waiting) &&
         clock_type::now() < end + 5s)
    wait(clock_type::now() + 100ms);
}

void client::send_request(const connection& on) {
  if (send(on.fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0) die("send");
}

void client::send_due(clock_type::time_point now) {
  for (;; ++next_) {
    const auto due = start_ + static_cast<std::int64_t>(next_) * period_;
    if (due > now) return;
    auto& on = connections_[next_ % connections_.size()];
    on.due.push_back(due);
    if (on.due.size() == 1) send_request(on);
  }
}

void client::wait(clock_type::time_point until) {
  const auto left = std::max<std::chrono::nanoseconds>(until - clock_type::now(), 0ns);
  const timespec limit{left / 1s, (left % 1s).count()};
  std::array<epoll_event, 64> events;
  const int count = epoll_pwait2(epoll_, events.data(), events.size(), &limit, nullptr);
  for (int i = 0; i < count; ++i)
    receive(*static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr));
}

void client::receive(connection& on) {
  std::array<char, 4096> buffer;
  const auto size = recv(on.fd, buffer.data(), buffer.size(), 0);
  if (size <= 0) die("recv");
  on.answer.append(buffer.data(), static_cast<std::size_t>(size));
  const auto head = on.answer.find("\r\n\r\n");
  if (head == std::string::npos || on.answer.size() < head + 4 + body_size) return;
  const std::chrono::duration<double, std::micro> took = clock_type::now() - on.due.front();
  times_.push_back(took.count());
  on.answer.clear();
  on.due.pop_front();
  if (!on.due.empty()) send_request(on);
}

void client::print() {
  if (times_.empty()) die("no answer");
  std::sort(times_.begin(), times_.end());
  const auto at = [this](double part) {
    return times_[static_cast<std::size_t>(part * static_cast<double>(times_.size() - 1))];
  };
  std::printf("%zu %.1f %.1f %.1f\n", times_.size(), at(0.5), at(0.99), times_.back());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("usage: paced PORT RATE CONNECTIONS SECONDS\n", stderr);
    return 64;
  }
  client all(static_cast<std::uint16_t>(std::atoi(argv[1])),
             static_cast<std::size_t>(std::atoi(argv[3])));
  all.run(std::atof(argv[2]), std::chrono::seconds(std::atoi(argv[4])));
  all.print();
}
