#include "net/lookup_queue.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <thread>

namespace kubelane::net {
namespace {

using namespace std::chrono_literals;

constexpr int most_threads = 4;
constexpr int most_slow = 2;
constexpr auto slow_from = 1s;

// Signals belong to the main thread; a thread inherits the mask of the one that starts it.
class signals_blocked {
 public:
  signals_blocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

lookup_queue::lookup_queue(resolver::question ask)
    : ask_(std::move(ask)), descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

lookup_queue::~lookup_queue() {
  ::close(descriptor_);
}

void lookup_queue::ask(const std::string& name) {
  const std::lock_guard guard(lock_);
  waiting_.push_back(name);
  start_threads();
}

std::vector<lookup_queue::answer> lookup_queue::take_answers() {
  eventfd_t count = 0;
  ::eventfd_read(descriptor_, &count);
  const std::lock_guard guard(lock_);
  start_threads();  // one that could not be started before
  return std::exchange(answers_, {});
}

// Holds the lock.
bool lookup_queue::startable(const std::string& name) const {
  return slow_running_ < most_slow || !slow_.contains(name);
}

// Holds the lock.
void lookup_queue::start_threads() {
  const auto can_start = [this](const std::string& name) { return startable(name); };
  const auto startable_names = std::count_if(waiting_.begin(), waiting_.end(), can_start);
  for (auto wanted = startable_names; wanted > 0 && threads_ < most_threads; --wanted) {
    const signals_blocked quiet;
    try {
      std::thread(work, shared_from_this()).detach();
      ++threads_;
    } catch (const std::system_error&) {
      return;  // no thread to be had now: tried again with the next question
    }
  }
}

bool lookup_queue::take(std::string& name) {
  const std::lock_guard guard(lock_);
  const auto can_start = [this](const std::string& one) { return startable(one); };
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), can_start);
  if (next == waiting_.end()) {
    --threads_;
    return false;
  }
  name = std::move(*next);
  waiting_.erase(next);
  if (slow_.contains(name)) ++slow_running_;
  return true;
}

void lookup_queue::finish(const std::string& name, lookup_result result, bool slow) {
  const std::lock_guard guard(lock_);
  if (slow_.contains(name)) --slow_running_;
  if (slow)
    slow_.insert(name);
  else
    slow_.erase(name);
  answers_.emplace_back(name, std::move(result));
  ::eventfd_write(descriptor_, 1);
}

void lookup_queue::work(std::shared_ptr<lookup_queue> shared) {
  for (std::string name; shared->take(name);) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = shared->ask_(name);
    const bool slow = std::chrono::steady_clock::now() - begin >= slow_from;
    shared->finish(name, std::move(result), slow);
  }
}

}  // namespace kubelane::net
