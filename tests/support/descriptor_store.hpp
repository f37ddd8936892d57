#pragma once

#include "tests/support/temporary_folder.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace kubelane::test {

/// What systemd's service manager does for a service's descriptors: takes FDSTORE, FDSTOREREMOVE
/// and BARRIER on a socket of its own, and holds what it was given, by name, until it is told to
/// let go or is destroyed. Full, it drops silently, as systemd does. Listens on a thread.
class descriptor_store {
 public:
  explicit descriptor_store(std::size_t most = 2048);
  ~descriptor_store();
  descriptor_store(const descriptor_store&) = delete;
  descriptor_store& operator=(const descriptor_store&) = delete;

  /// For $NOTIFY_SOCKET.
  std::string address() const { return folder_ / "notify"; }
  /// What it holds, in the order in which systemd passes it on: equal names reversed. The
  /// descriptors stay the store's.
  std::vector<std::pair<int, std::string>> held() const;
  std::size_t count(const std::string& prefix) const;
  /// All assignments but those about descriptors: "READY=1", "STATUS=serving", ...
  std::vector<std::string> said() const;
  bool heard(const std::string& assignment) const;
  /// How many datagrams came.
  std::size_t datagrams() const;
  /// Forgets what was said.
  void listen_anew();

  /// Adds descriptors, as if the service had done so: copies are made.
  void add(const std::string& name, const std::vector<int>& descriptors);
  /// Drops everything, as `systemctl stop` does.
  void clear();
  /// Takes no FDSTOREREMOVE, as a manager does that has not come to it yet.
  void keep_everything(bool on);
  /// Takes this long for each datagram.
  void slow_down(std::chrono::milliseconds each);
  /// Takes nothing more, and reads nothing: the manager is busy.
  void sleep(bool asleep);

 private:
  void run();
  void take(const std::string& text, const std::vector<int>& descriptors);
  bool holds(int descriptor) const;

  temporary_folder folder_;
  std::size_t most_;
  int socket_;
  int stop_[2];
  mutable std::mutex mutex_;
  std::multimap<std::string, int> held_;
  std::vector<std::string> said_;
  bool asleep_ = false;
  std::chrono::milliseconds each_{0};
  bool keeps_everything_ = false;
  std::size_t datagrams_ = 0;
  std::thread thread_;
};

}  // namespace kubelane::test
