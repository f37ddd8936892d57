#pragma once

#include "health/evidence.hpp"

#include <utility>

namespace kubelane::health {

/// When one upstream is probed next. Pure: time and randomness are arguments.
///
/// Due at once when made. While a probe runs nothing is due.
class probe_schedule {
 public:
  enum class reason { interval, asked };
  /// A probe starts now. Returns why.
  reason started() noexcept {
    running_ = true;
    reconnected_ = is_pressing_ = false;
    return std::exchange(asked_, false) ? reason::asked : reason::interval;
  }
  /// It has a result.
  void ended() noexcept { running_ = false; }
  /// It was reported, and the next one may wait this long.
  void reported(time_point now, milliseconds delay) noexcept { due_ = now + delay; }
  /// Somebody wants to know sooner. A probe that runs is soon enough: whoever needs one that began
  /// later says so when it is reported. One more right behind it would be in the way of that.
  void asked() noexcept {
    if (!running_) asked_ = true;
  }
  /// The same, but a probe that runs will not do.
  void asked_anew() noexcept { asked_ = true; }
  /// The next probe, which is due soon, is not put off.
  void pressing() noexcept { is_pressing_ = true; }

  enum class after_loss {
    reconnect,  ///< TCP alone, at once
    probe,      ///< at once: it was lost again right after reconnecting
  };
  /// The held connection ended between two probes.
  after_loss lost() const noexcept {
    return reconnected_ ? after_loss::probe : after_loss::reconnect;
  }
  /// Connected again after a loss. A whole fleet may be doing the same: each goes on after a random
  /// part of the interval. `random01` in [0, 1).
  void reconnected(time_point now, milliseconds interval, double random01) noexcept {
    reconnected_ = true;
    if (is_pressing_) return;
    due_ = now + std::chrono::duration_cast<milliseconds>(interval * random01);
  }

  bool is_due(time_point now) const noexcept { return asked_ || now >= due_; }
  /// Unless somebody asks sooner.
  time_point due() const noexcept { return due_; }

 private:
  time_point due_{};
  bool running_ = false;
  bool asked_ = false;
  bool is_pressing_ = false;
  bool reconnected_ = false;  // since the last probe
};

}  // namespace kubelane::health
