#pragma once

#include "binary.hpp"
#include "tests/support/descriptor_store.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kubelane::test {

/// Runs kubelane as systemd does with `Restart=always` and a descriptor store, one process after
/// the other. The test says when.
class service_manager {
 public:
  /// The store's size is in $FDSTORE, unless `environment` says otherwise.
  explicit service_manager(std::vector<std::string> arguments, std::size_t store_size = 2048,
                           std::vector<std::string> environment = {});

  /// Starts the next process with what the store holds.
  void start();
  /// The same, with other arguments from now on.
  void start(std::vector<std::string> arguments);
  /// Sends a signal and waits for the end: its status, as of binary::wait.
  int end(int signal);
  /// SIGTERM, then `start`; and SIGKILL.
  void restart();
  void kill();
  /// Waits until this process has said READY=1.
  bool ready();

  binary& run() { return *run_; }

  descriptor_store store;

 private:
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  std::unique_ptr<binary> run_;
};

}  // namespace kubelane::test
