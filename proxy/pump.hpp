#pragma once

#include "proxy/pipe_pool.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace kubelane::proxy {

/// One socket of a relay, as the pumps see it. What events have said is remembered here, since the
/// reactor is edge-triggered: a flag is cleared only by a call that said "would block".
struct pump_end {
  int fd = -1;
  int error = 0;  ///< the first one; the kernel reports each once, then a read looks like an end
  bool readable = false;
  bool writable = false;
  bool hung_up = false;         ///< an end or an error is behind the bytes: read on until it comes
  bool unproven = false;        ///< the last read was short and nobody looked again
  bool queue_is_short = false;  ///< the kernel takes few bytes before they can be sent
  std::uint32_t read_turn = 0;  ///< of the last read
};

/// Remembers what an epoll event says; takes the socket's pending error, if it has one.
void note_events(pump_end& at, std::uint32_t events);

/// Why a pump stopped.
enum class pump_status {
  idle,           ///< nothing to read
  blocked,        ///< the sink takes no more
  spent,          ///< the budget is used up; there may be more
  no_pipe,        ///< out of descriptors
  ended,          ///< the source ended, and everything was passed on
  source_failed,  ///< source.error is set, and everything before it was passed on
  sink_failed,    ///< sink.error is set
};

/// Moves bytes one way: socket to pipe to socket, by splice(2), so that they are always in the
/// kernel. Knows what its pipe holds and does not ask.
///
/// Small messages cost less copied than spliced. So unless it owns its pipe, which is to say that
/// its connection is to outlive the process, it reads them into memory and sends them at once; what
/// the sink does not take goes into the pipe before `run` returns.
///
/// A splice that brings less than asked for usually means that there is no more, and then it costs
/// a system call a message to look again. Not always: a pipe has 16 places, and each segment of the
/// network takes at least one, however short. So it looks again at once where many segments are
/// likely (many bytes, or reads in successive turns), and else leaves `unproven` set.
class pump {
 public:
  /// The pipe comes from the pool, and goes back as soon as it is empty.
  explicit pump(pipe_pool& pipes) noexcept : pipes_(&pipes) {}
  pump(const pump&) = delete;
  pump& operator=(const pump&) = delete;
  ~pump() { discard(); }

  struct moved {
    std::size_t read = 0;
    std::size_t written = 0;
  };
  /// Moves until it cannot, or `budget` bytes were read. `turn` numbers the loop's turns.
  pump_status run(pump_end& source, pump_end& sink, std::size_t budget, std::uint32_t turn,
                  moved& sum);

  /// Nothing is to be moved, and no end to be told: `run` would say idle.
  bool is_idle(const pump_end& source) const noexcept {
    return holds_ == 0 && !source.readable && !ended_;
  }
  /// Bytes in the pipe.
  std::uint32_t holds() const noexcept { return holds_; }
  /// Everything was read: the source's end was seen, or the limit reached.
  bool source_ended() const noexcept { return ended_; }
  /// Reads no more than this from now on, then behaves as if the source had ended.
  void limit(std::size_t bytes) noexcept;
  /// From now on the pipe stays this pump's, in one descriptor, which is returned; -1 when out of
  /// descriptors.
  int own_pipe();
  /// Takes over such a pipe of the process before, and what is in it.
  void adopt(int pipe);
  /// The owned pipe's; -1 if there is none.
  int pipe_descriptor() const noexcept { return owns_pipe() ? pipe_.read_end : -1; }
  /// Drops what is on its way.
  void discard() noexcept;

 private:
  pump_status drain(pump_end& sink, moved& sum);
  pump_status fill(pump_end& source, pump_end& sink, std::uint32_t turn, moved& sum);
  pump_status copy(pump_end& source, pump_end& sink, moved& sum);
  bool may_copy(const pump_end& sink) const noexcept {
    return !bulk_ && pipe_.capacity == 0 && sink.writable && pipes_->room_at_hand() > 0;
  }
  void note_read(std::size_t count, moved& sum) noexcept;
  void note_no_read(ssize_t count, pump_end& source) noexcept;
  bool put_into_pipe(const std::byte* bytes, std::size_t size);
  void give_pipe_back() noexcept;
  bool owns_pipe() const noexcept {
    return pipe_.read_end >= 0 && pipe_.read_end == pipe_.write_end;
  }

  static constexpr std::size_t unlimited = SIZE_MAX;

  pipe_pool* pipes_;
  pipe pipe_;
  std::uint32_t holds_ = 0;
  std::size_t left_ = unlimited;
  bool ended_ = false;
  bool bulk_ = false;  // many bytes a read: splice
};

}  // namespace kubelane::proxy
