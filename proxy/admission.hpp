#pragma once

#include "proxy/upstream_pool.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <string>

namespace kubelane::proxy {

/// Whether one more client is let in. The last tenth of the limit is kept for root on this host, so
/// that one user cannot take it all from the kubelet.
/// Returns why not, as rejected by data_path_observer; nullptr if it is. `client` is its socket,
/// `connections` those there are.
const char* turned_away_because(int client, bool client_is_local, std::size_t connections,
                                std::size_t limit);

/// At most so many a second, with a tenth of that at once.
class rate_limit {
 public:
  explicit rate_limit(double a_second) : a_second_(a_second), left_(a_second / 10) {}
  bool take(time_point now);

 private:
  double a_second_;
  double left_;
  time_point refilled_{};
};

/// The few bits of the pool's status that every connection needs, at most 100 ms old.
class pool_view {
 public:
  explicit pool_view(const upstream_pool& pool) : pool_(pool) {}
  bool all_down(time_point now) { return look(now).all_down_; }
  bool all_slow(time_point now) { return look(now).all_slow_; }

 private:
  const pool_view& look(time_point now);

  const upstream_pool& pool_;
  time_point seen_{};
  bool all_down_ = false;
  bool all_slow_ = false;
};

/// Keeps descriptors free for probes, pipes, the admin port and files. The kernel gives the lowest
/// free number, so a number says how many are in use.
class descriptor_guard {
 public:
  descriptor_guard() { read_limit(); }
  /// The process' limit may have changed.
  void read_limit();
  /// This number is one of the reserve.
  bool is_reserve(int fd) const noexcept { return fd >= first_reserved_; }
  /// How far the second lowest free number is from the reserve, since a connection needs two; 0 or
  /// less: only the reserve is left. Needs an open descriptor to try with.
  int left(int any_fd) const;
  /// Empty pipes worth keeping under this limit.
  std::size_t pipes_to_keep() const noexcept { return first_reserved_ < 256 ? 2 : 16; }

 private:
  int first_reserved_ = 0;
};

/// Lets one line of each kind through in ten seconds.
class problem_log {
 public:
  void say(const char* kind, const std::string& words, time_point now,
           const std::function<void(const std::string&)>& to);

 private:
  std::map<std::string, time_point> said_;
};

}  // namespace kubelane::proxy
