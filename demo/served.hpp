#pragma once

#include <string>

namespace kubelane::demo {

struct served_options {
  std::string name;  ///< also of its certificate files: NAME.crt, NAME.key
  int port = 0;
  std::string directory;
};

/// Plays one API server until SIGTERM; the exit status.
///
/// SIGUSR1: its etcd is lost (`/readyz` says so), SIGUSR2: well again. SIGTERM: says that it shuts
/// down, serves on for three seconds, then goes, as kube-apiserver does with a shutdown delay.
/// Throws std::system_error or std::runtime_error if it cannot start.
int serve(const served_options& options);

}  // namespace kubelane::demo
