#include "config/last_good.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace kubelane::config {
namespace {

bool says(const std::string& path, std::string_view text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::string old{std::istreambuf_iterator<char>(file), {}};
  return old == text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::string last_good_path(const std::string& state_folder) {
  return state_folder + "/last-good.yaml";
}

bool save_last_good(const std::string& state_folder, std::string_view text) {
  const auto path = last_good_path(state_folder);
  if (says(path, text)) return true;
  const auto fresh = path + ".new";
  // Only for the one it belongs to: it may name files and addresses.
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool written = write_all(fd, text);
  int error = errno;
  const bool closed = close(fd) == 0;
  if (!closed) error = errno;
  if (written && closed && rename(fresh.c_str(), path.c_str()) == 0) return true;
  if (written && closed) error = errno;
  unlink(fresh.c_str());
  errno = error;
  return false;
}

}  // namespace kubelane::config
