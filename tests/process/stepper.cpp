#include "stepper.hpp"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <string>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

constexpr std::array counted = {SYS_accept4,    SYS_connect, SYS_sendto,     SYS_sendmsg,
                                SYS_recvfrom,   SYS_recvmsg, SYS_splice,     SYS_shutdown,
                                SYS_close,      SYS_socket,  SYS_pipe2,      SYS_openat,
                                SYS_getsockopt, SYS_ioctl,   SYS_setsockopt, SYS_epoll_ctl};

bool is_counted(long call) {
  return std::find(counted.begin(), counted.end(), call) != counted.end();
}

void request(__ptrace_request what, pid_t process, long data = 0) {
  if (::ptrace(what, process, nullptr, data) != 0 && errno != ESRCH)
    throw std::runtime_error("ptrace: " + std::to_string(errno));
}

}  // namespace

stepper::stepper(pid_t process) : process_(process) {
  request(PTRACE_SEIZE, process, PTRACE_O_TRACESYSGOOD);
  request(PTRACE_INTERRUPT, process);
  if (!wait_for_stop(std::chrono::steady_clock::now() + 5s))
    throw std::runtime_error("it does not stop");
}

stepper::~stepper() {
  if (!over_) ::ptrace(PTRACE_DETACH, process_, nullptr, 0L);
}

bool stepper::wait_for_stop(std::chrono::steady_clock::time_point end) {
  for (;;) {
    int status = 0;
    const auto got = ::waitpid(process_, &status, WNOHANG | __WALL);
    if (got == process_) return WIFSTOPPED(status);
    if (got < 0 || std::chrono::steady_clock::now() > end) return false;
    const timespec pause{0, 20'000};
    ::nanosleep(&pause, nullptr);
  }
}

bool stepper::kill_after(int n, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  long call = -1;
  over_ = true;
  while (n > 0) {
    request(PTRACE_SYSCALL, process_);
    if (!wait_for_stop(end)) break;
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, process_, sizeof info, &info) <= 0) continue;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) call = static_cast<long>(info.entry.nr);
    if (is_counted(call)) --n;  // before it is made, and after
  }
  ::kill(process_, SIGKILL);
  return n == 0;
}

}  // namespace kubelane::test
