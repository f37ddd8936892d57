#include "stepper.hpp"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <csignal>

namespace kubelane::test {
namespace {

constexpr std::array counted = {SYS_accept4,    SYS_connect, SYS_sendto,     SYS_sendmsg,
                                SYS_recvfrom,   SYS_recvmsg, SYS_splice,     SYS_shutdown,
                                SYS_close,      SYS_socket,  SYS_pipe2,      SYS_openat,
                                SYS_getsockopt, SYS_ioctl,   SYS_setsockopt, SYS_epoll_ctl};

bool is_counted(long call) {
  return std::find(counted.begin(), counted.end(), call) != counted.end();
}

}  // namespace

bool stepper::kill_after(int n, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  long call = -1;
  while (n > 0 && std::chrono::steady_clock::now() < end && it_.go_on(traced::step::to_call)) {
    if (const auto entered = it_.entered(); entered >= 0) call = entered;
    if (is_counted(call)) --n;  // before it is made, and after
  }
  ::kill(process_, SIGKILL);
  return n == 0;
}

}  // namespace kubelane::test
