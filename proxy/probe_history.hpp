#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kubelane::proxy {

/// How long the last probes of one upstream took; a line for people to look at.
class probe_history {
 public:
  static constexpr std::size_t capacity = 60;

  struct entry {
    std::int64_t at_ms = 0;                     ///< Unix time in milliseconds of its end
    std::optional<std::uint32_t> microseconds;  ///< nothing: there was no answer
  };

  void add(entry one) noexcept {
    entries_[added_ % capacity] = one;
    ++added_;
  }
  std::size_t size() const noexcept { return added_ < capacity ? added_ : capacity; }
  /// 0 is the oldest; below `size()`.
  const entry& operator[](std::size_t i) const noexcept {
    return entries_[(added_ - size() + i) % capacity];
  }

 private:
  std::array<entry, capacity> entries_{};
  std::size_t added_ = 0;
};

}  // namespace kubelane::proxy
