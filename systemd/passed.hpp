#pragma once

#include <string>
#include <vector>

namespace kubelane::systemd {

/// A descriptor that the service manager gave to this process.
struct passed_descriptor {
  int fd;
  std::string name;  ///< "unknown" if it has none
};

/// Takes over what the service manager passed, from a socket unit or from the descriptor store.
/// They become close-on-exec; the caller owns them. The variables leave the environment, so that a
/// second call finds nothing. Empty if they are meant for another process.
/// Source: sd_listen_fds_with_names(3): $LISTEN_PID, $LISTEN_FDS, $LISTEN_FDNAMES, from 3 on.
std::vector<passed_descriptor> take_passed_descriptors();

}  // namespace kubelane::systemd
