#include "tests/support/network_namespace.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace kubelane::test {
namespace {

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

void enter(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = descriptor >= 0 && ::setns(descriptor, CLONE_NEWNET) == 0;
  ::close(descriptor);
  if (!entered) throw std::runtime_error("cannot enter " + path);
}

void run_in(const std::string& name, const std::function<void()>& what) {
  const auto own = "/proc/self/task/" + std::to_string(::gettid()) + "/ns/net";
  const int back = ::open(own.c_str(), O_RDONLY | O_CLOEXEC);
  enter("/run/netns/" + name);
  try {
    what();
  } catch (...) {
    ::setns(back, CLONE_NEWNET);
    ::close(back);
    throw;
  }
  ::setns(back, CLONE_NEWNET);
  ::close(back);
}

}  // namespace

std::unique_ptr<network_pair> network_pair::create(std::string& why) {
  if (::geteuid() != 0) {
    why = "network namespaces need root";
    return nullptr;
  }
  std::unique_ptr<network_pair> made(new network_pair);
  const auto id = std::to_string(::getpid());
  made->here_ = "kl-test-" + id;
  made->there_ = "kl-test-" + id + "-b";
  const std::vector<std::string> commands = {
      "ip netns add " + made->here_,
      "ip netns add " + made->there_,
      "ip -n " + made->here_ + " link add left type veth peer name right netns " + made->there_,
      "ip -n " + made->here_ + " addr add 10.99.0.1/24 dev left",
      "ip -n " + made->there_ + " addr add 10.99.0.2/24 dev right",
      "ip -n " + made->here_ + " link set left up",
      "ip -n " + made->here_ + " link set lo up",
      "ip -n " + made->there_ + " link set right up",
  };
  for (const auto& command : commands) {
    if (run(command)) continue;
    why = "not permitted here: " + command;
    return nullptr;
  }
  return made;
}

network_pair::~network_pair() {
  run("ip netns del " + here_);
  run("ip netns del " + there_);
}

void network_pair::there(const std::function<void()>& what) const {
  run_in(there_, what);
}
void network_pair::here(const std::function<void()>& what) const {
  run_in(here_, what);
}

// Without its address the other host takes no packet; both links stay up, nobody is told.
void network_pair::vanish() const {
  run("ip -n " + there_ + " addr flush dev right");
}
void network_pair::come_back() const {
  run("ip -n " + there_ + " addr add 10.99.0.2/24 dev right");
}

}  // namespace kubelane::test
