#include "service_manager.hpp"

#include "tests/support/poll_until.hpp"

#include <csignal>
#include <utility>

namespace kubelane::test {

service_manager::service_manager(std::vector<std::string> arguments, std::size_t store_size,
                                 std::vector<std::string> environment)
    : store(store_size), arguments_(std::move(arguments)), environment_(std::move(environment)) {
  environment_.push_back("NOTIFY_SOCKET=" + store.address());
  environment_.push_back("FDSTORE=" + std::to_string(store_size));
}

void service_manager::start() {
  store.listen_anew();
  run_ = std::make_unique<binary>(arguments_, environment_, store.held());
}

void service_manager::start(std::vector<std::string> arguments) {
  arguments_ = std::move(arguments);
  start();
}

int service_manager::end(int signal) {
  run_->signal(signal);
  return run_->wait();
}

void service_manager::restart() {
  end(SIGTERM);
  start();
}

void service_manager::kill() {
  end(SIGKILL);
  start();
}

bool service_manager::ready() {
  return poll_until([this] { return store.heard("READY=1"); }, 20s);
}

}  // namespace kubelane::test
