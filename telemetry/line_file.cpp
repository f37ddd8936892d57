#include "telemetry/line_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace kubelane::telemetry {
namespace {

// It names servers and what is wrong with them: for its owner, as the rest of the folder.
constexpr mode_t mode = 0600;

/// 0, or the errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// The last `count` lines of `text`.
std::string_view last_lines(std::string_view text, std::size_t count) {
  auto at = text.size();
  if (at > 0 && text.back() == '\n') --at;
  while (at > 0) {
    const auto end = text.rfind('\n', at - 1);
    if (end == std::string_view::npos) return text;
    if (--count == 0) return text.substr(end + 1);
    at = end;
  }
  return text;
}

}  // namespace

// Not a stream: one throws when it reads from a directory.
std::optional<std::string> read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> buffer{};  // on the stack, whose pages stay
  for (;;) {
    const auto count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      const int error = errno;
      ::close(fd);
      errno = error;
      if (count == 0) return text;
      return std::nullopt;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

line_file::line_file(std::string path, std::size_t kept) : path_(std::move(path)), kept_(kept) {}

line_file::~line_file() {
  close();
}

void line_file::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

/// Somebody removed it: what is appended would be lost.
bool line_file::is_gone() const {
  struct stat info {};
  return fd_ >= 0 && (::fstat(fd_, &info) != 0 || info.st_nlink == 0);
}

int line_file::open() {
  if (is_gone()) close();
  if (fd_ >= 0) return 0;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, mode);
  if (fd_ < 0) return errno;
  const auto text = read_text(path_).value_or("");
  lines_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  torn_ = !text.empty() && text.back() != '\n';
  return 0;
}

int line_file::append(std::string_view line) {
  std::string text = torn_ ? "\n" : "";
  text += line;
  text += '\n';
  const int error = write_all(fd_, text);
  torn_ = error != 0;
  if (error == 0) ++lines_;
  return error;
}

int line_file::shorten() {
  const auto text = read_text(path_);
  if (!text) return errno;
  const auto fresh = path_ + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return errno;
  int error = write_all(fd, last_lines(*text, kept_));
  if (error == 0 && ::fsync(fd) != 0) error = errno;  // or a power cut leaves an empty file
  if (::close(fd) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(fresh.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0)
    ::unlink(fresh.c_str());
  else
    close();
  return error;
}

int line_file::add(std::string_view line) {
  if (const int error = open(); error != 0) return error;
  if (const int error = append(line); error != 0) return error;
  return lines_ >= 2 * kept_ ? shorten() : 0;
}

}  // namespace kubelane::telemetry
