#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace kubelane::commands {

struct captured {
  std::string output;   ///< what it has printed, standard error included
  std::string failure;  ///< why that is not everything, in words; empty: it is
};

/// Runs a program of $PATH, with English messages, and takes what it prints: for `limit` and
/// `most` bytes at most, then it is killed.
captured capture(std::vector<std::string> command, std::chrono::milliseconds limit,
                 std::size_t most);

}  // namespace kubelane::commands
