// When to probe next.

#include "health/tracker.hpp"

#include <algorithm>

namespace kubelane::health {

using namespace std::chrono_literals;

namespace {

constexpr milliseconds after_time_out = 250ms;
constexpr milliseconds after_bad_answer = 500ms;
constexpr milliseconds while_rising = 1s;

milliseconds share(milliseconds of, double part) {
  return milliseconds(static_cast<milliseconds::rep>(static_cast<double>(of.count()) * part));
}

}  // namespace

milliseconds tracker::next_delay(std::optional<milliseconds> leaving_in, double random01,
                                 time_point now) {
  const auto later = 1 + random01 / 5;  // up to 20 %
  switch (last_) {
    case outcome::passed:
    case outcome::unauthorized:
      if (state_ == state::ready || passes_ >= settings_.rise) return interval(random01, now);
      return share(std::min(settings_.interval, while_rising), 0.8 + random01 / 5);
    case outcome::timed_out:
      if (!asks_soon_after_time_out(leaving_in.has_value())) return interval(random01, now);
      return share(after_time_out, later);
    case outcome::lost:
      if (cut_offs_ >= settings_.fall) return interval(random01, now);
      return cut_offs_ == 1 ? 0ms : share(after_time_out, later);
    case outcome::not_ready:
      if (state_ != state::not_ready) return share(after_bad_answer, later);
      return leaving_in ? share(pace(leaving_in), later) : interval(random01, now);
    case outcome::shutting_down:
    case outcome::refused:
      return leaving_in ? share(pace(leaving_in), later) : interval(random01, now);
    case outcome::local_trouble:
      return std::min(settings_.interval, while_rising);
    case outcome::host_silent:
      return leaving_in ? share(after_time_out, later) : interval(random01, now);
    case outcome::wrong_certificate:
    case outcome::bad_validity:
    case outcome::not_tls:
      return interval(random01, now);
  }
  return settings_.interval;
}

milliseconds tracker::usual_time() const {
  return settings_.fall * settings_.timeout + (settings_.fall - 1) * after_time_out;
}

bool tracker::asks_soon_after_time_out(bool leaving) const {
  if (state_ == state::slow) return !silent_.empty();
  if (state_ == state::hung || state_ == state::dead) return leaving || acquitted_;
  return true;
}

milliseconds tracker::pace(std::optional<milliseconds> leaving_in) const {
  const auto slowest = std::max(settings_.interval, after_bad_answer);
  return std::clamp(leaving_in.value_or(0ms) / 4, after_bad_answer, slowest);
}

milliseconds tracker::interval(double random01, time_point now) {
  const auto period = settings_.interval;
  const auto left = scheduled_ ? std::chrono::ceil<milliseconds>(*scheduled_ - now) : 0ms;
  if (left > period / 5 && left <= period) return left;
  const auto delay = share(period, scheduled_ ? 0.8 + random01 / 5 : random01);
  scheduled_ = now + delay;
  return delay;
}

}  // namespace kubelane::health
