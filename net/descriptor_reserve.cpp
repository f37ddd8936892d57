#include "net/descriptor_reserve.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace kubelane::net {

descriptor_reserve::~descriptor_reserve() {
  resize(0);
}

void descriptor_reserve::resize(std::size_t count) {
  wanted_ = count;
  while (placeholders_.size() > wanted_) give_up();
  refill();
}

bool descriptor_reserve::give_up() {
  if (placeholders_.empty()) return false;
  ::close(placeholders_.back());
  placeholders_.pop_back();
  return true;
}

void descriptor_reserve::refill() {
  while (placeholders_.size() < wanted_) {
    const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    placeholders_.push_back(descriptor);
  }
}

}  // namespace kubelane::net
