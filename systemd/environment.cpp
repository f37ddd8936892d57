#include "systemd/environment.hpp"

#include <cstdlib>

namespace kubelane::systemd {

std::string take_environment(const char* name) {
  const char* value = std::getenv(name);
  std::string result = value == nullptr ? "" : value;
  ::unsetenv(name);
  return result;
}

}  // namespace kubelane::systemd
