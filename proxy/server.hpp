#pragma once

#include "config/config.hpp"
#include "config/file_watch.hpp"
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
};

telemetry::log_level level_of(config::log_level level);
telemetry::log_format format_of(config::log_format format);

/// The composition root: builds everything, wires it, reloads, stops. The only place where events
/// become log lines and metrics.
///
/// starting (constructor, open) -> serving (run) -> stopping (SIGTERM) -> stopped (run returns).
class server {
 public:
  /// `settings` are complete and valid.
  server(config::config settings, server_options options, telemetry::log& log);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Opens the client listeners. Nothing if that worked, else what is wrong, in words.
  std::optional<std::string> open();
  /// Serves until SIGTERM or SIGINT, then lets connections leave; a second signal goes at once.
  void run();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::proxy
