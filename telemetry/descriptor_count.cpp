#include "telemetry/descriptor_count.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace kubelane::telemetry {
namespace {

constexpr int places_a_step = 1024;  // a fifth of a millisecond

/// Nothing before Linux 6.2.
std::optional<std::uint64_t> size_of_folder() {
  struct stat about {};
  if (::stat("/proc/self/fd", &about) != 0 || about.st_size <= 0) return std::nullopt;
  return static_cast<std::uint64_t>(about.st_size);
}

/// No descriptor is at or above it.
int table_size() {
  std::ifstream file("/proc/self/status");
  std::string word;
  int size = 0;
  while (file >> word)
    if (word == "FDSize:" && file >> size) return size;
  return 0;
}

}  // namespace

descriptor_count::descriptor_count(how counted)
    : walks_(counted == how::walk || !size_of_folder()) {}

std::uint64_t descriptor_count::value() {
  if (!walks_) return size_of_folder().value_or(0);
  if (next_ < 0) {
    next_ = found_ = 0;
    end_ = table_size();
  }
  if (!last_) walk(std::numeric_limits<int>::max());  // the very first: there is no older one
  return last_.value_or(0);
}

void descriptor_count::step() {
  if (next_ >= 0) walk(places_a_step);
}

void descriptor_count::walk(int places) {
  for (const int stop = next_ + std::min(places, end_ - next_); next_ < stop; ++next_)
    found_ += ::fcntl(next_, F_GETFD) >= 0 ? 1 : 0;
  if (next_ < end_) return;
  last_ = found_;
  next_ = -1;
}

}  // namespace kubelane::telemetry
