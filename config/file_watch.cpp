#include "config/file_watch.hpp"

#include <sys/stat.h>

#include <utility>

namespace kubelane::config {

file_watch::file_watch(std::vector<std::string> paths, clock::duration settle)
    : paths_(std::move(paths)), settle_(settle) {
  std::erase(paths_, "");
  known_.resize(paths_.size());
  known_ = look_at_all();
}

std::optional<file_watch::fingerprint> file_watch::look(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return fingerprint{about.st_dev,         about.st_ino,          about.st_size,
                     about.st_mtim.tv_sec, about.st_mtim.tv_nsec, about.st_ctim.tv_sec,
                     about.st_ctim.tv_nsec};
}

file_watch::fingerprints file_watch::look_at_all() const {
  fingerprints result;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    auto seen = look(paths_[i]);
    result.push_back(seen ? seen : known_[i]);
  }
  return result;
}

bool file_watch::poll(clock::time_point now) {
  auto seen = look_at_all();
  if (seen == known_) {
    unsettled_.reset();
    return false;
  }
  if (unsettled_ != seen) {
    unsettled_ = std::move(seen);
    since_ = now;
    return false;
  }
  if (now - since_ < settle_) return false;
  known_ = *std::exchange(unsettled_, std::nullopt);
  return true;
}

}  // namespace kubelane::config
