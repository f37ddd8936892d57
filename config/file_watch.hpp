#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kubelane::config {

/// Tells when files that belong together (a configuration; a CA, a certificate and its key) have
/// changed on disk and are whole again.
///
/// Polls `stat(2)`, symbolic links followed, so it sees what inotify does in one file's folder
/// alone: writes in place, renames, and the switch of a link above the file (Kubernetes' `..data`).
/// A change counts once nothing has changed for `settle`: a half-written file can be a valid one. A
/// missing file is no change; the one that takes its place is.
class file_watch {
 public:
  using clock = std::chrono::steady_clock;

  /// Takes what is there now as known: make it before the files are read, so that what changes in
  /// between is seen. Empty paths are passed by.
  explicit file_watch(std::vector<std::string> paths,
                      clock::duration settle = std::chrono::seconds(1));

  /// To be called several times in `settle`. True once for each change that has settled.
  bool poll(clock::time_point now);

 private:
  struct fingerprint {
    std::uint64_t device;
    std::uint64_t inode;
    std::int64_t size;
    std::int64_t modified_seconds;
    std::int64_t modified_nanoseconds;
    std::int64_t changed_seconds;
    std::int64_t changed_nanoseconds;
    friend bool operator==(const fingerprint&, const fingerprint&) = default;
  };
  using fingerprints = std::vector<std::optional<fingerprint>>;

  static std::optional<fingerprint> look(const std::string& path);
  fingerprints look_at_all() const;

  std::vector<std::string> paths_;
  clock::duration settle_;
  fingerprints known_;                     // nothing: was never there
  std::optional<fingerprints> unsettled_;  // differs from known_, seen since since_
  clock::time_point since_;
};

}  // namespace kubelane::config
