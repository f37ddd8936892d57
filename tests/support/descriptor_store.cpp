#include "tests/support/descriptor_store.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <sstream>
#include <stdexcept>

namespace kubelane::test {
namespace {

int listen_at(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  if (path.size() >= sizeof where.sun_path) throw std::runtime_error("path too long: " + path);
  std::memcpy(where.sun_path, path.data(), path.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    throw std::runtime_error("cannot bind " + path);
  return fd;
}

struct datagram {
  std::string text;
  std::vector<int> descriptors;
};

bool receive(int socket, datagram& into) {
  std::array<char, 8192> text{};
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(64 * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0) return false;
  into = {std::string(text.data(), static_cast<std::size_t>(size)), {}};
  for (auto* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_type != SCM_RIGHTS) continue;
    into.descriptors.resize((one->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(into.descriptors.data(), CMSG_DATA(one), into.descriptors.size() * sizeof(int));
  }
  return true;
}

}  // namespace

descriptor_store::descriptor_store(std::size_t most) : most_(most), socket_(listen_at(address())) {
  if (::pipe2(stop_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  thread_ = std::thread([this] { run(); });
}

descriptor_store::~descriptor_store() {
  ::close(stop_[1]);
  thread_.join();
  ::close(stop_[0]);
  ::close(socket_);
  clear();
}

void descriptor_store::run() {
  for (;;) {
    std::array<pollfd, 2> waiting{{{socket_, POLLIN, 0}, {stop_[0], POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), 20);
    if (waiting[1].revents != 0) return;
    std::unique_lock lock(mutex_);
    for (datagram next; !asleep_ && receive(socket_, next);) {
      take(next.text, next.descriptors);
      if (each_ == std::chrono::milliseconds(0)) continue;
      lock.unlock();
      std::this_thread::sleep_for(each_);
      lock.lock();
    }
  }
}

void descriptor_store::take(const std::string& text, const std::vector<int>& descriptors) {
  ++datagrams_;
  std::string name = "stored";
  bool stores = false;
  bool removes = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "FDSTORE=1")
      stores = true;
    else if (line == "FDSTOREREMOVE=1")
      removes = true;
    else if (line.starts_with("FDNAME="))
      name = line.substr(7);
    else
      said_.push_back(line);
  }
  if (removes && !keeps_everything_) {
    const auto [first, last] = held_.equal_range(name);
    std::for_each(first, last, [](const auto& each) { ::close(each.second); });
    held_.erase(first, last);
  }
  for (const int fd : descriptors) {
    if (stores && held_.size() < most_ && !holds(fd))
      held_.emplace(name, fd);
    else
      ::close(fd);  // a barrier's too: that is its answer
  }
}

// systemd does not take twice what it holds, under whatever name.
bool descriptor_store::holds(int descriptor) const {
  constexpr int compare_files = 0;  // KCMP_FILE
  return std::any_of(held_.begin(), held_.end(), [&](const auto& each) {
    return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), compare_files, each.second, descriptor) == 0;
  });
}

void descriptor_store::keep_everything(bool on) {
  const std::lock_guard lock(mutex_);
  keeps_everything_ = on;
}

std::vector<std::pair<int, std::string>> descriptor_store::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<int, std::string>> result;
  for (const auto& [name, fd] : held_) result.emplace_back(fd, name);
  std::reverse(result.begin(), result.end());
  return result;
}

std::size_t descriptor_store::count(const std::string& prefix) const {
  const auto all = held();
  return static_cast<std::size_t>(std::count_if(
      all.begin(), all.end(), [&](const auto& each) { return each.second.starts_with(prefix); }));
}

std::vector<std::string> descriptor_store::said() const {
  const std::lock_guard lock(mutex_);
  return said_;
}

bool descriptor_store::heard(const std::string& assignment) const {
  const auto all = said();
  return std::find(all.begin(), all.end(), assignment) != all.end();
}

std::size_t descriptor_store::datagrams() const {
  const std::lock_guard lock(mutex_);
  return datagrams_;
}

void descriptor_store::listen_anew() {
  const std::lock_guard lock(mutex_);
  said_.clear();
}

void descriptor_store::add(const std::string& name, const std::vector<int>& descriptors) {
  const std::lock_guard lock(mutex_);
  for (const int fd : descriptors) held_.emplace(name, ::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void descriptor_store::clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, fd] : held_) ::close(fd);
  held_.clear();
}

void descriptor_store::slow_down(std::chrono::milliseconds each) {
  const std::lock_guard lock(mutex_);
  each_ = each;
}

void descriptor_store::sleep(bool asleep) {
  const std::lock_guard lock(mutex_);
  asleep_ = asleep;
}

}  // namespace kubelane::test
