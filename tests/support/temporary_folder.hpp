#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace kubelane::test {

/// A folder that goes away with this object.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "kubelane-test-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  std::string operator/(std::string_view name) const { return path_ / name; }

  /// Writes a file at once (by rename); returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    const auto target = *this / name;
    const auto fresh = target + ".new";
    std::ofstream(fresh, std::ios::binary) << content;
    std::filesystem::rename(fresh, target);
    return target;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace kubelane::test
