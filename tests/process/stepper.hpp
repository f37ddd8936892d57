#pragma once

#include <sys/types.h>

#include <chrono>

namespace kubelane::test {

/// Stops the main thread of a child process, to kill it right before or after a chosen system
/// call of those that touch sockets and pipes. To be used on one thread alone (ptrace(2)).
class stepper {
 public:
  /// Stops it where it is.
  explicit stepper(pid_t process);
  /// Lets it go on, if it was not killed.
  ~stepper();
  stepper(const stepper&) = delete;
  stepper& operator=(const stepper&) = delete;

  /// Lets it run until the `n`th such moment from now on, two a call, then kills it. False if there
  /// were not as many within `limit`: then it was killed where it was.
  bool kill_after(int n, std::chrono::milliseconds limit);

 private:
  bool wait_for_stop(std::chrono::steady_clock::time_point end);

  pid_t process_;
  bool over_ = false;
};

}  // namespace kubelane::test
