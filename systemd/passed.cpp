#include "systemd/passed.hpp"

#include "systemd/environment.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace kubelane::systemd {
namespace {

constexpr int first = 3;
constexpr long most = 1 << 16;

}  // namespace

std::vector<passed_descriptor> take_passed_descriptors() {
  const auto process = take_environment("LISTEN_PID");
  const auto number = take_environment("LISTEN_FDS");
  std::istringstream names(take_environment("LISTEN_FDNAMES"));
  if (process != std::to_string(::getpid())) return {};
  const auto count = std::clamp(std::strtol(number.c_str(), nullptr, 10), 0L, most);
  std::vector<passed_descriptor> result;
  for (int fd = first; fd < first + count; ++fd) {
    std::string name;
    if (!std::getline(names, name, ':') || name.empty()) name = "unknown";
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) result.push_back({fd, std::move(name)});
  }
  return result;
}

}  // namespace kubelane::systemd
