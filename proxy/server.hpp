#pragma once

#include "config/config.hpp"
#include "config/file_watch.hpp"
#include "proxy/inheritance.hpp"
#include "systemd/notify.hpp"
#include "telemetry/log.hpp"

#include <memory>
#include <optional>
#include <string>

namespace kubelane::proxy {

struct server_options {
  std::string config_path;  ///< re-read on SIGHUP and when the file changes
  /// Of that file, made before it was read, so that no change in between is missed.
  config::file_watch watch;
  std::optional<telemetry::log_level> level;  ///< instead of the configuration's
  /// Where copies of good configurations go; empty: nowhere.
  std::string state_folder;
  /// What the configuration file said. Empty: it could not be used, and the settings are those of
  /// the last good copy.
  std::string text;
  /// A client port that another process holds is waited for, and no other is opened before that one
  /// is free. Otherwise it is a reason not to start.
  bool wait_for_port = false;
};

telemetry::log_level level_of(config::log_level level);
telemetry::log_format format_of(config::log_format format);

/// The composition root: builds everything, wires it, reloads, stops. The only place where events
/// become log lines and metrics.
///
/// starting (constructor, open) -> serving (run) -> stopping (SIGTERM) -> stopped (run returns).
class server {
 public:
  /// `settings` are complete and valid; `manager` and `log` outlive this.
  server(config::config settings, server_options options, const systemd::notifier& manager,
         telemetry::log& log);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Opens the client listeners, those of the process before first, and ends what that has left and
  /// nobody wants. Nothing if that worked, else what is wrong, in words.
  std::optional<std::string> open(inheritance from_before);
  /// Goes on with the connections of the process before, then serves until SIGTERM or SIGINT. With
  /// a descriptor store everything is left to the next process then; otherwise connections are made
  /// to leave, and a second signal goes at once.
  enum class outcome { stopped, handed_over };
  /// After `handed_over` nothing may be destroyed: the caller ends the process.
  outcome run();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::proxy
