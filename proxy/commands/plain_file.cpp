#include "proxy/commands/plain_file.hpp"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace kubelane::commands {
namespace {

class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// 0, or the errno.
int copy_all(int from, int to) {
  constexpr std::size_t chunk = 1 << 20;
  for (;;) {
    const auto count = ::sendfile(to, from, nullptr, chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return 0;
  }
}

}  // namespace

file_text read_plain_file(const std::string& path, links symbolic, std::size_t most) {
  const int no_links = symbolic == links::refuse ? O_NOFOLLOW : 0;
  const descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_links));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return {"", std::strerror(errno)};
  if (!S_ISREG(info.st_mode)) return {"", "not a regular file"};
  file_text result;
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) result.failure = std::strerror(errno);
    if (count <= 0) return result;
    const auto size = static_cast<std::size_t>(count);
    const auto room = most - result.text.size();
    result.text.append(buffer.data(), std::min(size, room));
    if (size <= room) continue;
    result.failure = "only its first " + std::to_string(most) + " bytes";
    return result;
  }
}

std::string place_private_file(const std::string& from, const std::string& to) {
  const descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return std::strerror(errno);
  // A new file with a name that nobody knows before, mode 0600: no link is followed.
  std::string fresh = to + ".XXXXXX";
  const descriptor target(::mkostemp(fresh.data(), O_CLOEXEC));
  if (target.get() < 0) return std::strerror(errno);
  int error = copy_all(source.get(), target.get());
  if (error == 0 && ::rename(fresh.c_str(), to.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(fresh.c_str());
  return std::strerror(error);
}

}  // namespace kubelane::commands
