#include "proxy/pump.hpp"

#include "net/socket.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr std::uint32_t usual_capacity = 64 * 1024;

// Not the library's splice(2): in a process with threads, that is a point of cancellation, which
// costs more than all else here.
ssize_t splice_now(int from, int to, std::size_t size) {
  return syscall(SYS_splice, from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

}  // namespace

[[gnu::hot]] void note_events(pump_end& at, std::uint32_t events) {
  if ((events & EPOLLERR) != 0 && at.error == 0) at.error = net::take_error(at.fd);
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) at.hung_up = true;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    at.readable = true;
    at.unproven = false;
  }
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) at.writable = true;
}

[[gnu::hot]] pump_status pump::run(pump_end& source, pump_end& sink, std::size_t budget,
                                   std::uint32_t turn, moved& sum) {
  for (;;) {
    if (holds_ > 0) {
      if (!sink.writable) return pump_status::blocked;
      const auto status = drain(sink, sum);
      if (status != pump_status::idle) return status;
      continue;
    }
    if (ended_) {
      give_pipe_back();
      return source.error != 0 ? pump_status::source_failed : pump_status::ended;
    }
    if (!source.readable) {
      give_pipe_back();
      return pump_status::idle;
    }
    if (sum.read >= budget) return pump_status::spent;
    const auto status = fill(source, turn, sum);
    if (status != pump_status::idle) return status;
  }
}

// idle: go on.
[[gnu::hot]] pump_status pump::drain(pump_end& sink, moved& sum) {
  const auto count = splice_now(pipe_.read_end, sink.fd, holds_);
  if (count > 0) {
    holds_ -= static_cast<std::uint32_t>(count);
    sum.written += static_cast<std::size_t>(count);
    return pump_status::idle;
  }
  if (count < 0 && errno == EINTR) return pump_status::idle;
  if (count < 0 && errno == EAGAIN) {
    sink.writable = false;
    return pump_status::blocked;
  }
  if (sink.error == 0) sink.error = count < 0 ? errno : EPIPE;
  return pump_status::sink_failed;
}

[[gnu::hot]] pump_status pump::fill(pump_end& source, std::uint32_t turn, moved& sum) {
  if (pipe_.capacity == 0) {
    const auto taken = pipes_->take();
    if (!taken) return pump_status::no_pipe;
    pipe_ = *taken;
  }
  const auto count =
      splice_now(source.fd, pipe_.write_end, std::min<std::size_t>(pipe_.capacity, left_));
  if (count > 0) {
    holds_ = static_cast<std::uint32_t>(count);
    sum.read += static_cast<std::size_t>(count);
    if (left_ != unlimited) limit(left_ - static_cast<std::size_t>(count));
    const bool in_a_row = turn - source.read_turn <= 1;
    const bool few_places = pipe_.capacity < usual_capacity;  // it is full with few segments
    source.readable = source.hung_up || in_a_row || few_places || holds_ >= pipe_.capacity / 4;
    source.unproven = !source.readable;
    source.read_turn = turn;
    return pump_status::idle;
  }
  if (count < 0 && errno == EINTR) return pump_status::idle;
  source.unproven = false;
  if (count < 0 && errno == EAGAIN) {  // no data: the pipe was empty
    source.readable = false;
    return pump_status::idle;
  }
  if (count < 0 && source.error == 0) source.error = errno;
  ended_ = true;
  return pump_status::idle;
}

void pump::limit(std::size_t bytes) noexcept {
  left_ = bytes;
  if (bytes == 0) ended_ = true;
}

int pump::own_pipe() {
  if (pipe_.capacity == 0) {
    const auto taken = pipes_->take();
    if (!taken) return -1;
    pipe_ = *taken;
  }
  if (pipes_->join_ends(pipe_)) return pipe_.read_end;
  if (holds_ == 0) give_pipe_back();
  return -1;
}

void pump::adopt(int pipe) {
  pipe_ = pipe_pool::from(pipe);
  holds_ = static_cast<std::uint32_t>(net::unread_bytes(pipe));
}

[[gnu::hot]] void pump::give_pipe_back() noexcept {
  if (pipe_.capacity == 0 || owns_pipe()) return;
  pipes_->give(std::exchange(pipe_, {}));
}

void pump::discard() noexcept {
  if (holds_ == 0 && !owns_pipe()) return give_pipe_back();
  if (pipe_.capacity != 0) pipe_pool::discard(std::exchange(pipe_, {}));
  holds_ = 0;
}

}  // namespace kubelane::proxy
