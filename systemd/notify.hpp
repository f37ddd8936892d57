#pragma once

#include <chrono>
#include <optional>
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

  void ready(std::string_view status) const;
  /// RELOADING=1; `ready` ends it.
  void reloading() const;
  void stopping(std::string_view status) const;
  void watchdog() const { send("WATCHDOG=1"); }

  /// How often `watchdog` has to be called: half the manager's limit. Nothing: no watchdog.
  std::optional<std::chrono::microseconds> watchdog_period() const noexcept { return period_; }

 private:
  int socket_ = -1;
  std::string address_;
  std::optional<std::chrono::microseconds> period_;
};

}  // namespace kubelane::systemd
