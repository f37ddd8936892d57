#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace kubelane::test {

/// A run of the kubelane binary on a terminal of its own, as a person has it.
class pseudo_terminal {
 public:
  struct size {
    unsigned short columns;
    unsigned short lines;
  };

  /// `environment` is `NAME=value`, added to this process' own without NO_COLOR.
  pseudo_terminal(const std::vector<std::string>& arguments, size of,
                  const std::vector<std::string>& environment = {});
  ~pseudo_terminal();
  pseudo_terminal(const pseudo_terminal&) = delete;
  pseudo_terminal& operator=(const pseudo_terminal&) = delete;

  pid_t pid() const noexcept { return pid_; }
  void resize(size to) const;
  void type(const std::string& keys) const;

  /// Everything that was written to the terminal so far.
  const std::string& written();
  /// The lines of the last whole frame, without colours.
  std::vector<std::string> frame();
  /// Waits until a line of the last frame contains `text`.
  bool shows(const std::string& text, std::chrono::milliseconds limit = std::chrono::seconds(10));
  /// Waits for its end: its exit status, 128 + N if signal N ended it, -1 if it still runs.
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(10));

 private:
  int master_ = -1;
  pid_t pid_ = -1;
  int status_ = -1;
  std::string written_;
};

}  // namespace kubelane::test
