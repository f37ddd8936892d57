#pragma once

#include "traced.hpp"

#include <chrono>

namespace kubelane::test {

/// Stops the main thread of a child process, to kill it right before or after a chosen system
/// call of those that touch sockets and pipes. To be used on one thread alone (ptrace(2)).
class stepper {
 public:
  /// Stops it where it is. It goes on with this object's end, if it was not killed.
  explicit stepper(pid_t process) : process_(process), it_(process) {}

  /// Lets it run until the `n`th such moment from now on, two a call, then kills it. False if there
  /// were not as many within `limit`: then it was killed where it was.
  bool kill_after(int n, std::chrono::milliseconds limit);

 private:
  pid_t process_;
  traced it_;
};

}  // namespace kubelane::test
