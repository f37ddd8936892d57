#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kubelane::telemetry {

/// All of a file. Nothing if it cannot be read, as a directory; errno says why.
std::optional<std::string> read_text(const std::string& path);

/// A file of lines that outlives its writer, of which there is one.
///
/// Each line is appended with one write, so that a kill tears none; what a full disk or a power cut
/// has torn ends before the next. At twice `kept` lines the file is replaced by its last `kept`.
/// Blocks as disks do.
class line_file {
 public:
  line_file(std::string path, std::size_t kept);
  ~line_file();
  line_file(const line_file&) = delete;
  line_file& operator=(const line_file&) = delete;

  /// 0, or the errno of what failed. The next call tries everything again.
  int add(std::string_view line);

 private:
  int open();
  int append(std::string_view line);
  int shorten();
  bool is_gone() const;
  void close();

  std::string path_;
  std::size_t kept_;
  int fd_ = -1;
  std::size_t lines_ = 0;
  bool torn_ = false;  ///< the last line has no end
};

}  // namespace kubelane::telemetry
