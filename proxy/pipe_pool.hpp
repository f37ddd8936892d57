#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kubelane::proxy {

/// A pipe between the two halves of a pump: bytes on their way are in it, never in our memory.
struct pipe {
  int read_end = -1;
  int write_end = -1;          ///< the same as read_end: one descriptor is both
  std::uint32_t capacity = 0;  ///< bytes; a segment of the network takes at least a page of it
};

/// Empty pipes to be used for as long as bytes are in them. Non-blocking, close-on-exec.
class pipe_pool {
 public:
  /// At most `kept` empty ones are kept open.
  explicit pipe_pool(std::size_t kept = 16) : kept_(kept) {}
  ~pipe_pool();
  pipe_pool(const pipe_pool&) = delete;
  pipe_pool& operator=(const pipe_pool&) = delete;

  /// An empty pipe; nothing when out of descriptors.
  std::optional<pipe> take();
  /// Gives an empty one back.
  void give(const pipe& empty);
  /// Makes one descriptor of two, for both ends, so that who keeps the pipe keeps it whole; what is
  /// in it stays. False when out of descriptors: nothing is changed.
  bool join_ends(pipe& of);
  /// A pipe that another process opened, by such a descriptor.
  static pipe from(int both_ends);
  /// Closes one that still holds bytes, which are lost.
  static void discard(const pipe& held);
  /// Opens pipes until this many are at hand, as far as descriptors allow.
  void fill(std::size_t wanted);
  /// Bytes that the one `take` would give has room for; 0 if it would have to open one.
  std::size_t room_at_hand() const noexcept { return idle_.empty() ? 0 : idle_.back().capacity; }

 private:
  static std::optional<pipe> open();

  bool put_into_slot(int fd);

  std::size_t kept_;
  std::vector<pipe> idle_;
  int slot_ = -1;  // a descriptor for join_ends; what it is of does not matter
};

}  // namespace kubelane::proxy
