#pragma once

// Inside net/ only.

#include "net/resolve.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kubelane::net {

/// What the resolver and its helper threads share; lives for as long as one of them does. The one
/// place with a lock: `getaddrinfo` leaves no choice.
class lookup_queue : public std::enable_shared_from_this<lookup_queue> {
 public:
  using answer = std::pair<std::string, lookup_result>;

  explicit lookup_queue(resolver::question ask);
  ~lookup_queue();

  /// Readable when there are answers.
  int descriptor() const noexcept { return descriptor_; }
  void ask(const std::string& name);
  std::vector<answer> take_answers();

 private:
  static void work(std::shared_ptr<lookup_queue> shared);
  bool take(std::string& name);
  bool startable(const std::string& name) const;
  void finish(const std::string& name, lookup_result result, bool slow);
  void start_threads();

  const resolver::question ask_;
  const int descriptor_;  // an eventfd
  std::mutex lock_;
  std::deque<std::string> waiting_;
  std::vector<answer> answers_;
  std::set<std::string> slow_;  // names that took long the last time
  int threads_ = 0;
  int slow_running_ = 0;
};

}  // namespace kubelane::net
