#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kubelane::systemd {

/// Speaks sd_notify(3) to the service manager; does nothing when not started by one.
///
/// Sends are non-blocking: a stuck manager never stops the loop.
/// Source: sd_notify(3), sd_watchdog_enabled(3); the protocol is one datagram to $NOTIFY_SOCKET.
class notifier {
 public:
  /// Takes $NOTIFY_SOCKET, $WATCHDOG_USEC and $WATCHDOG_PID, and removes them from the environment
  /// so that no child speaks in our name.
  notifier();
  ~notifier();
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;

  /// Sends assignments, one a line, as `READY=1\nSTATUS=...`. False if nobody listens.
  bool send(std::string_view assignments) const;
  /// Someone may be listening: $NOTIFY_SOCKET was set.
  bool present() const noexcept { return socket_ >= 0; }

  /// False if it could not be sent now: it has to be sent again.
  bool ready(std::string_view status) const;
  /// RELOADING=1; `ready` ends it.
  void reloading() const;
  void stopping(std::string_view status) const;
  void watchdog() const { send("WATCHDOG=1"); }

  /// Puts copies of these descriptors into the manager's store, all under one name and all or none
  /// (one datagram). The manager drops them silently when its store is full.
  /// False if it could not be sent now. At most 16 descriptors; a name has no colon.
  /// Source: sd_pid_notify_with_fds(3), FDSTORE=1, FDNAME=, FDPOLL=0.
  bool store(std::string_view name, std::span<const int> descriptors) const;
  /// Takes all descriptors of that name out of the store. False if it could not be sent now.
  bool forget(std::string_view name) const;
  /// Waits until the manager has handled what was sent, or for `limit`. Source: BARRIER=1.
  bool barrier(std::chrono::milliseconds limit) const;

  /// How often `watchdog` has to be called: half the manager's limit. Nothing: no watchdog.
  std::optional<std::chrono::microseconds> watchdog_period() const noexcept { return period_; }

 private:
  bool send(std::string_view assignments, std::span<const int> descriptors) const;

  int socket_ = -1;
  std::string address_;
  std::optional<std::chrono::microseconds> period_;
};

}  // namespace kubelane::systemd
