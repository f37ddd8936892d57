#pragma once

#include <string>

namespace kubelane::systemd {

/// What the service manager says to this process in a variable; it is removed, so that no child
/// takes it for its own. Empty if it is not set.
std::string take_environment(const char* name);

}  // namespace kubelane::systemd
