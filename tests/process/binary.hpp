#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace kubelane::test {

/// A run of the kubelane binary. Standard output and error are collected; it is killed, if it still
/// runs, when this is destroyed.
class binary {
 public:
  /// Descriptors and their names, passed as a service manager does: from 3 on.
  using passed = std::vector<std::pair<int, std::string>>;
  /// Starts it with these arguments and `NAME=value` added to the environment.
  explicit binary(const std::vector<std::string>& arguments,
                  const std::vector<std::string>& environment = {}, const passed& descriptors = {});
  ~binary();
  binary(const binary&) = delete;
  binary& operator=(const binary&) = delete;

  pid_t pid() const noexcept { return pid_; }
  void signal(int number) const;
  bool running();
  /// Waits for its end: its exit status, 128 + N if signal N ended it, -1 if it still runs.
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(20));

  /// What it has written so far.
  const std::string& out();
  const std::string& error();
  /// Waits until its standard error contains `text`.
  bool says(const std::string& text, std::chrono::milliseconds limit = std::chrono::seconds(20));

 private:
  void collect();

  pid_t pid_ = -1;
  int status_ = -1;
  int out_pipe_ = -1;
  int error_pipe_ = -1;
  std::string out_;
  std::string error_;
};

/// A TCP port of the loopback that nobody listened on a moment ago.
int free_port();

/// One answer of an admin port: status and body; status 0 if there is none.
struct http_answer {
  int status = 0;
  std::string body;
};
http_answer get(int port, const std::string& path);

}  // namespace kubelane::test
