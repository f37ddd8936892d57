#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace kubelane::demo {

/// A child process; killed and reaped when destroyed. It dies with its parent.
class process {
 public:
  process() = default;
  /// Runs this very program with other arguments; standard error goes to `log_file`.
  /// Throws std::system_error.
  process(const std::vector<std::string>& arguments, const std::string& log_file);
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;
  ~process() { kill(); }

  void signal(int number) const;
  /// SIGKILL, then waits for its end.
  void kill() noexcept;
  /// Waits at most two seconds for its end by itself, then kills. True if it ended with status 0.
  bool finish() noexcept;
  bool running() const noexcept;

 private:
  pid_t pid_ = -1;
};

/// A directory under $TMPDIR that vanishes with everything in it.
class scratch_directory {
 public:
  scratch_directory();
  ~scratch_directory();
  scratch_directory(const scratch_directory&) = delete;
  scratch_directory& operator=(const scratch_directory&) = delete;

  std::string path(const std::string& name) const { return path_ + '/' + name; }
  /// Writes a file in it and returns the file's path. Throws std::system_error.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

/// Ports of the loopback that nobody listened on a moment ago.
std::vector<int> free_ports(std::size_t count);

}  // namespace kubelane::demo
