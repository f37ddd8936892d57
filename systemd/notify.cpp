#include "systemd/notify.hpp"

#include "systemd/environment.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace kubelane::systemd {
namespace {

constexpr std::size_t most_descriptors = 16;

}  // namespace

notifier::notifier() : address_(take_environment("NOTIFY_SOCKET")) {
  const auto limit = take_environment("WATCHDOG_USEC");
  const auto process = take_environment("WATCHDOG_PID");
  if (!limit.empty() && (process.empty() || process == std::to_string(::getpid()))) {
    const auto microseconds = std::strtoull(limit.c_str(), nullptr, 10);
    if (microseconds > 0) period_ = std::chrono::microseconds(microseconds / 2);
  }
  if (address_.empty()) return;
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

notifier::~notifier() {
  if (socket_ >= 0) ::close(socket_);
}

bool notifier::send(std::string_view assignments) const {
  return send(assignments, {});
}

bool notifier::send(std::string_view assignments, std::span<const int> descriptors) const {
  sockaddr_un to{};
  if (socket_ < 0 || address_.size() >= sizeof to.sun_path) return false;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';  // the abstract name space
  iovec text{const_cast<char*>(assignments.data()), assignments.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    assert(descriptors.size() <= most_descriptors);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(socket_, &message, MSG_NOSIGNAL) >= 0;
}

bool notifier::store(std::string_view name, std::span<const int> descriptors) const {
  // FDPOLL=0: the manager would drop a socket as soon as its peer has left, with bytes unread.
  return send("FDSTORE=1\nFDPOLL=0\nFDNAME=" + std::string(name), descriptors);
}

bool notifier::forget(std::string_view name) const {
  return send("FDSTOREREMOVE=1\nFDNAME=" + std::string(name));
}

bool notifier::barrier(std::chrono::milliseconds limit) const {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const bool sent = send("BARRIER=1", std::span(&ends[1], 1));
  ::close(ends[1]);
  pollfd closed{ends[0], 0, 0};  // POLLHUP comes unasked
  const bool handled = sent && ::poll(&closed, 1, static_cast<int>(limit.count())) > 0;
  ::close(ends[0]);
  return handled;
}

bool notifier::ready(std::string_view status) const {
  return send("READY=1\nSTATUS=" + std::string(status));
}

void notifier::reloading() const {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto microseconds = now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds));
}

void notifier::stopping(std::string_view status) const {
  send("STOPPING=1\nSTATUS=" + std::string(status));
}

}  // namespace kubelane::systemd
