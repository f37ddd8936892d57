#include "network.hpp"

namespace kubelane::sim {

milliseconds world::random_in(milliseconds from, milliseconds to) {
  return from + milliseconds(static_cast<milliseconds::rep>(
                    random01() * static_cast<double>((to - from).count())));
}

bool segment::step(world& in, const api_server& at) {
  while (!arrived_ && in.now >= first_ + retransmission_ * ((1 << tries_) - 1)) {
    ++tries_;
    arrived_ = in.arrives(at);
  }
  return arrived_;
}

bool exchange::step(world& in, const api_server& at) {
  if (!request_.step(in, at)) return false;
  if (at.program != process::running) return false;
  if (!processed_) processed_ = in.now + processing_;
  if (in.now < *processed_) return false;
  if (!answer_) answer_.emplace(in.now, milliseconds(200));
  return answer_->step(in, at);
}

}  // namespace kubelane::sim
