#pragma once

// What the load client and its server say to each other, and how each byte is known.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace traffic {

enum class kind : std::uint32_t {
  stream,  ///< both sides send without end, each a pattern of its own
  ping,    ///< the server echoes
  answer   ///< each `request` is answered by `answer_size` bytes
};

/// The first bytes of a client.
struct greeting {
  std::uint64_t magic = 0x6b6c616e65747266;
  std::uint64_t id = 0;  ///< of the connection; seeds its patterns
  kind what = kind::ping;
  std::uint32_t padding = 0;
};

/// One ping, and what its answer must be.
struct ping {
  std::uint64_t number = 0;
  std::int64_t intended = 0;  ///< nanoseconds of the monotonic clock
};

/// Asks for the next answer.
struct request {
  std::uint64_t number = 0;
};

constexpr std::uint64_t answer_size = 64ULL << 20;

/// An endless sequence of bytes in which every position's value is known: a random block of prime
/// length, again and again. Missing, repeated and swapped bytes show, unless exactly a block is
/// missing.
class pattern {
 public:
  explicit pattern(std::uint64_t seed) : start_(seed * 7919 % length) {}

  /// Up to `size` bytes from `position` on; at least one block's length is available at once.
  std::span<const std::byte> at(std::uint64_t position, std::size_t size) const {
    return block().subspan((start_ + position) % length, size < length ? size : length);
  }

 private:
  static constexpr std::size_t length = 1048573;

  /// Twice the block, so that any stretch of its length is in one piece.
  static std::span<const std::byte> block();

  std::uint64_t start_;
};

inline std::span<const std::byte> pattern::block() {
  static const auto bytes = [] {
    std::vector<std::byte> made(2 * length);
    std::uint64_t state = 88172645463325252ULL;
    for (std::size_t i = 0; i < length; ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // xorshift64
      made[i] = made[i + length] = static_cast<std::byte>(state >> 32);
    }
    return made;
  }();
  return bytes;
}

inline pattern upwards(std::uint64_t id) {
  return pattern(2 * id);
}
inline pattern downwards(std::uint64_t id) {
  return pattern(2 * id + 1);
}
inline pattern of_answer(std::uint64_t id, std::uint64_t number) {
  return pattern(31 * id + number);
}

}  // namespace traffic
