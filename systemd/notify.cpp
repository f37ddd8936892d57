#include "systemd/notify.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace kubelane::systemd {
namespace {

std::string take_environment(const char* name) {
  const char* value = std::getenv(name);
  std::string result = value == nullptr ? "" : value;
  ::unsetenv(name);
  return result;
}

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
  sockaddr_un to{};
  if (socket_ < 0 || address_.size() >= sizeof to.sun_path) return false;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';  // the abstract name space
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  return ::sendto(socket_, assignments.data(), assignments.size(), MSG_NOSIGNAL,
                  reinterpret_cast<const sockaddr*>(&to), length) >= 0;
}

void notifier::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + std::string(status));
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
