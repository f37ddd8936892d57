#include "traced.hpp"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

namespace kubelane::test {
namespace {

void request(__ptrace_request what, pid_t process, long data = 0) {
  if (::ptrace(what, process, nullptr, data) != 0 && errno != ESRCH)
    throw std::runtime_error("ptrace: " + std::to_string(errno));
}

}  // namespace

traced::traced(pid_t process) : process_(process) {
  request(PTRACE_SEIZE, process, PTRACE_O_TRACESYSGOOD);
  request(PTRACE_INTERRUPT, process);
  if (!wait_for_stop()) throw std::runtime_error("it does not stop");
}

void traced::let_go() {
  if (std::exchange(let_go_, true)) return;
  if (stopped_) ::ptrace(PTRACE_DETACH, process_, nullptr, 0L);
}

bool traced::go_on(step how) {
  request(how == step::to_call ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, process_);
  return wait_for_stop();
}

bool traced::wait_for_stop() {
  int status = 0;
  const auto got = ::waitpid(process_, &status, __WALL);
  return stopped_ = got == process_ && WIFSTOPPED(status);
}

long traced::entered() const {
  __ptrace_syscall_info info{};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, process_, sizeof info, &info) <= 0) return -1;
  return info.op == PTRACE_SYSCALL_INFO_ENTRY ? static_cast<long>(info.entry.nr) : -1;
}

long traced::returned() const {
  __ptrace_syscall_info info{};
  if (::ptrace(PTRACE_GET_SYSCALL_INFO, process_, sizeof info, &info) <= 0) return 0;
  return info.op == PTRACE_SYSCALL_INFO_EXIT ? static_cast<long>(info.exit.rval) : 0;
}

long traced::about_to_call() const {
#if defined(__x86_64__)
  user_regs_struct registers{};
  if (::ptrace(PTRACE_GETREGS, process_, nullptr, &registers) != 0) return -1;
  constexpr long syscall_instruction = 0x050f;
  const auto next = ::ptrace(PTRACE_PEEKTEXT, process_, registers.rip, nullptr);
  if ((next & 0xffff) == syscall_instruction) return static_cast<long>(registers.rax);
#endif
  return -1;
}

}  // namespace kubelane::test
