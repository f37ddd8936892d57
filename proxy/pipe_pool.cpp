#include "proxy/pipe_pool.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace kubelane::proxy {

pipe_pool::~pipe_pool() {
  for (const auto& empty : idle_) discard(empty);
}

std::optional<pipe> pipe_pool::take() {
  if (idle_.empty()) return open();
  const auto result = idle_.back();
  idle_.pop_back();
  return result;
}

void pipe_pool::give(const pipe& empty) {
  if (idle_.size() >= kept_)
    discard(empty);
  else
    idle_.push_back(empty);
}

void pipe_pool::discard(const pipe& held) {
  close(held.read_end);
  close(held.write_end);
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
  // Smaller than usual when this user's pipes hold too many pages already.
  const int capacity = fcntl(ends[1], F_GETPIPE_SZ);
  return pipe{ends[0], ends[1], static_cast<std::uint32_t>(capacity > 0 ? capacity : 4096)};
}

}  // namespace kubelane::proxy
