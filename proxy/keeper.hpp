#pragma once

#include "net/reactor.hpp"
#include "proxy/kept_table.hpp"
#include "systemd/notify.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kubelane::proxy {

/// The service manager's descriptor store, as this process uses it: listeners, connections, and the
/// table that describes them. What is in it survives this process.
///
/// The store drops silently what does not fit, so everything is counted here. It is the manager's
/// work that grows with what it holds, so connections are stored at a limited rate.
/// Source: systemd.service(5), FileDescriptorStoreMax=.
class keeper {
 public:
  using milliseconds = net::milliseconds;

  /// Both outlive this. `most` descriptors fit into the store.
  keeper(net::reactor& loop, const systemd::notifier& manager, std::size_t most);
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

  /// $FDSTORE, which systemd sets from version 254 on, or what our unit file allows.
  static std::size_t limit_from_environment();

  /// Begins: with the table of the process before, if there is one.
  void open(std::optional<kept_table> inherited);
  /// There is a store, as far as is known: the manager has taken what it was given, and has not
  /// dropped it since.
  bool is_active() const noexcept { return active_; }

  /// Stores a listener under a name of its own.
  void keep_listener(int fd);
  /// One that came out of the store.
  void adopted_listener(const std::string& name);

  /// A record to be filled in for a connection; nullptr: there is no room, or it is too early for
  /// one more. `urgent` knows no rate.
  enum class pace { limited, urgent };
  kept_record* add(pace how);
  /// Stores the descriptors of a filled record. False, and the record is no more, if the manager
  /// does not listen right now.
  bool store(kept_record& record, std::span<const int> descriptors);
  /// The record's connection came out of the store.
  void adopted(const kept_record& record);
  /// The connection is over: it leaves the store and the table.
  void forget(kept_record& record);
  /// Descriptors of that name leave the store.
  void forget(const std::string& name);

  /// Waits, for `limit` at most, until the manager has everything.
  void settle(milliseconds limit);

  /// Connections in the store, and how many fit.
  std::size_t connections() const noexcept { return connections_; }
  std::size_t capacity() const noexcept;
  bool is_full() const noexcept { return connections_ + removals_.size() >= capacity(); }

 private:
  void look_whether_it_holds();
  void send_removals();

  const systemd::notifier& manager_;
  net::reactor& loop_;
  std::size_t most_;
  std::optional<kept_table> table_;
  bool active_ = false;
  std::size_t connections_ = 0;
  std::size_t listeners_ = 0;
  std::vector<std::string> listener_names_;
  std::vector<std::string> removals_;  // the manager did not listen when they were due
  net::watched_fd canary_;
  net::timer retry_;
  double tokens_;
  net::time_point refilled_{};
};

}  // namespace kubelane::proxy
