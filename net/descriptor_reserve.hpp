#pragma once

#include <cstddef>
#include <vector>

namespace kubelane::net {

/// Descriptors held back, so that one is to be had when everything else has taken the rest.
/// Placeholders on /dev/null stand for them.
class descriptor_reserve {
 public:
  descriptor_reserve() = default;
  ~descriptor_reserve();
  descriptor_reserve(const descriptor_reserve&) = delete;
  descriptor_reserve& operator=(const descriptor_reserve&) = delete;

  /// Holds this many from now on.
  void resize(std::size_t count);
  /// Frees one for the caller, who takes it at once; false if none is left.
  bool give_up();
  /// Takes back what was given up, as far as there are free ones. Call it after a close.
  void refill();

  std::size_t size() const noexcept { return placeholders_.size(); }

 private:
  std::vector<int> placeholders_;
  std::size_t wanted_ = 0;
};

}  // namespace kubelane::net
