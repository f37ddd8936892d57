#include "health/suspicion.hpp"

#include <algorithm>

namespace kubelane::health {

using namespace std::chrono_literals;

namespace {
constexpr milliseconds forget_after = 60s;
constexpr milliseconds longest_pause = 60s;
// A server that really hangs is found within seconds, whatever was suspected before.
constexpr milliseconds longest_patience = 5s;
}  // namespace

suspicion::suspicion(milliseconds suspect_after, milliseconds interval)
    : suspect_after_(suspect_after), interval_(interval), patience_(suspect_after) {}

void suspicion::configure(milliseconds suspect_after, milliseconds interval) {
  suspect_after_ = suspect_after;
  interval_ = interval;
  patience_ = suspect_after;
}

milliseconds suspicion::patience(std::uint64_t bytes_up, time_point now) const {
  if (bytes_up == bytes_then_) return patience_;  // nothing was asked since the last good answer
  if (raised_[1] != time_point{} && now - raised_[1] >= forget_after) return suspect_after_;
  return std::min(patience_, std::max(suspect_after_, longest_patience));
}

std::optional<time_point> suspicion::raise(time_point unanswered_since, std::uint64_t bytes_up,
                                           time_point now) {
  if (unanswered_since == time_point{} || pending_) return std::nullopt;
  const auto wait = patience(bytes_up, now);
  const auto due = std::max(unanswered_since, answered_) + wait;
  if (due > now) return std::nullopt;
  if (raised_[0] != time_point{} && now - raised_[0] < interval_) return std::nullopt;
  raised_ = {raised_[1], now};
  patience_ = wait;
  pending_ = true;
  return due;
}

void suspicion::answered_well(time_point started, std::uint64_t bytes_up) {
  if (pending_) patience_ = std::min(std::max(patience_ * 2, suspect_after_), longest_pause);
  pending_ = false;
  answered_ = std::max(answered_, started);
  bytes_then_ = bytes_up;
}

void suspicion::confirmed() {
  pending_ = false;
  patience_ = suspect_after_;
}

}  // namespace kubelane::health
