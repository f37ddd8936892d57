#pragma once

#include <cstddef>
#include <string>

namespace kubelane::commands {

enum class links { follow, refuse };

struct file_text {
  std::string text;
  std::string failure;  ///< why that is not everything, in words; empty: it is
};

/// The first `most` bytes of a regular file. Never waits, as for the writer of a FIFO. `links`:
/// what to do if the last part of the path is a symbolic link.
file_text read_plain_file(const std::string& path, links symbolic, std::size_t most);

/// Copies `from` to `to`, for its owner alone: what has been there, a symbolic link too, is
/// replaced in one step. What failed, in words.
std::string place_private_file(const std::string& from, const std::string& to);

}  // namespace kubelane::commands
