#pragma once

#include <sys/types.h>

namespace kubelane::test {

/// The main thread of a child process under ptrace(2). To be used on one thread alone. What it
/// waits for, this waits for, too; kubelane's loop turns 20 times a second.
class traced {
 public:
  /// Stops it where it is.
  explicit traced(pid_t process);
  ~traced() { let_go(); }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;

  enum class step {
    to_call,      ///< to the next entry of or return from a system call
    instruction,  ///< one instruction; a system call is one
  };
  /// Lets it take one step and waits for that, without a limit. False if it has ended.
  bool go_on(step how);

  /// After a step to a call: its number at an entry, -1 at a return.
  long entered() const;
  /// After a step to a call: what it returned, negative for an error; 0 at an entry.
  long returned() const;
  /// The system call that the next instruction is; -1: none. x86-64 alone.
  long about_to_call() const;

  /// Lets it go on, if it has not ended. Final.
  void let_go();

 private:
  bool wait_for_stop();

  pid_t process_;
  bool stopped_ = false;
  bool let_go_ = false;
};

}  // namespace kubelane::test
