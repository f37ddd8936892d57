#include "proxy/pump.hpp"

#include "net/socket.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr std::uint32_t usual_capacity = 64 * 1024;
constexpr std::size_t copied_at_most = 8 * 1024;

// Not the library's: in a process with threads, they are points of cancellation, which costs more
// than all else here.
ssize_t splice_now(int from, int to, std::size_t size) {
  return syscall(SYS_splice, from, nullptr, to, nullptr, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

ssize_t receive_now(int from, void* bytes, std::size_t size) {
  return syscall(SYS_recvfrom, from, bytes, size, MSG_DONTWAIT, nullptr, nullptr);
}

ssize_t send_now(int to, const void* bytes, std::size_t size) {
  return syscall(SYS_sendto, to, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL, nullptr, 0);
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
    const auto status = may_copy(sink) ? copy(source, sink, sum) : fill(source, sink, turn, sum);
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

[[gnu::hot]] pump_status pump::fill(pump_end& source, pump_end& sink, std::uint32_t turn,
                                    moved& sum) {
  if (pipe_.capacity == 0) {
    const auto taken = pipes_->take();
    if (!taken) return pump_status::no_pipe;
    pipe_ = *taken;
  }
  const auto count =
      splice_now(source.fd, pipe_.write_end, std::min<std::size_t>(pipe_.capacity, left_));
  if (count <= 0) {
    note_no_read(count, source);
    return pump_status::idle;
  }
  const bool first = sum.read == 0;
  note_read(static_cast<std::size_t>(count), sum);
  holds_ = static_cast<std::uint32_t>(count);
  if (first) bulk_ = holds_ >= copied_at_most / 2;
  if (bulk_ && !std::exchange(sink.queue_is_short, true)) net::keep_queue_short(sink.fd);
  const bool in_a_row = turn - source.read_turn <= 1;
  const bool few_places = pipe_.capacity < usual_capacity;  // it is full with few segments
  source.readable = source.hung_up || in_a_row || few_places || holds_ >= pipe_.capacity / 4;
  source.unproven = !source.readable;
  source.read_turn = turn;
  return pump_status::idle;
}

// Unlike splice(2), recv(2) has taken all there was if it brings less than asked for.
[[gnu::hot]] pump_status pump::copy(pump_end& source, pump_end& sink, moved& sum) {
  std::array<std::byte, copied_at_most> bytes;
  const auto wanted = std::min({bytes.size(), left_, pipes_->room_at_hand()});
  const auto count = receive_now(source.fd, bytes.data(), wanted);
  if (count <= 0) {
    note_no_read(count, source);
    return pump_status::idle;
  }
  const auto size = static_cast<std::size_t>(count);
  note_read(size, sum);
  bulk_ = size == wanted;
  source.readable = bulk_ || source.hung_up;
  source.unproven = false;
  const auto sent = send_now(sink.fd, bytes.data(), size);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    if (sink.error == 0) sink.error = errno;
    return pump_status::sink_failed;
  }
  const auto taken = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  sum.written += taken;
  if (taken == size || put_into_pipe(bytes.data() + taken, size - taken)) return pump_status::idle;
  sink.error = ENOBUFS;
  return pump_status::sink_failed;
}

// Empty, it has room for what was read.
bool pump::put_into_pipe(const std::byte* bytes, std::size_t size) {
  pipe_ = *pipes_->take();
  if (write(pipe_.write_end, bytes, size) != static_cast<ssize_t>(size)) return false;
  holds_ = static_cast<std::uint32_t>(size);
  return true;
}

[[gnu::hot]] void pump::note_read(std::size_t count, moved& sum) noexcept {
  sum.read += count;
  if (left_ != unlimited) limit(left_ - count);
}

// What a read that brought nothing says.
void pump::note_no_read(ssize_t count, pump_end& source) noexcept {
  if (count < 0 && errno == EINTR) return;
  source.unproven = false;
  if (count < 0 && errno == EAGAIN) {  // no data: the pipe was empty
    source.readable = false;
    return;
  }
  if (count < 0 && source.error == 0) source.error = errno;
  ended_ = true;
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
