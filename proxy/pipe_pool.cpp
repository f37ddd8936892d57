#include "proxy/pipe_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

namespace kubelane::proxy {
namespace {

// Smaller than usual when this user's pipes hold too many pages already.
std::uint32_t capacity_of(int fd) {
  const int bytes = fcntl(fd, F_GETPIPE_SZ);
  return static_cast<std::uint32_t>(bytes > 0 ? bytes : 4096);
}

}  // namespace

pipe_pool::~pipe_pool() {
  for (const auto& empty : idle_) discard(empty);
  if (slot_ >= 0) close(slot_);
}

[[gnu::hot]] std::optional<pipe> pipe_pool::take() {
  if (idle_.empty()) return open();
  const auto result = idle_.back();
  idle_.pop_back();
  return result;
}

[[gnu::hot]] void pipe_pool::give(const pipe& empty) {
  if (idle_.size() >= kept_)
    discard(empty);
  else
    idle_.push_back(empty);
}

void pipe_pool::discard(const pipe& held) {
  close(held.read_end);
  if (held.write_end != held.read_end) close(held.write_end);
}

bool pipe_pool::join_ends(pipe& of) {
  if (of.read_end == of.write_end) return true;
  if (!put_into_slot(of.read_end)) return false;
  const auto path = "/proc/self/fd/" + std::to_string(slot_);
  const int both = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (both < 0) return false;
  discard(of);  // its descriptors; the pipe itself lives on
  of.read_end = of.write_end = both;
  return true;
}

// Each number that is opened through /proc stays in the kernel's caches, a KiB that counts as this
// process': so it is always the same number.
bool pipe_pool::put_into_slot(int fd) {
  if (slot_ >= 0) return dup3(fd, slot_, O_CLOEXEC) >= 0;
  slot_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return slot_ >= 0;
}

pipe pipe_pool::from(int both_ends) {
  return {both_ends, both_ends, capacity_of(both_ends)};
}

void pipe_pool::fill(std::size_t wanted) {
  while (idle_.size() < wanted) {
    const auto added = open();
    if (!added) return;
    idle_.push_back(*added);
  }
}

std::optional<pipe> pipe_pool::open() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return std::nullopt;
  return pipe{ends[0], ends[1], capacity_of(ends[1])};
}

}  // namespace kubelane::proxy
