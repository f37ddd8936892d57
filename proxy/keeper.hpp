#pragma once

#include "net/reactor.hpp"
#include "proxy/kept_table.hpp"
#include "systemd/notify.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kubelane::proxy {

/// The service manager's descriptor store, as this process uses it: listeners, connections, and the
/// table that describes them. What is in it survives this process.
///
/// The store drops silently what does not fit, so everything is counted here. It is the manager's
/// work that grows with what it holds, so connections are stored at a limited rate. What the
/// manager does not listen to at once is said again, in order, until it does.
/// Source: systemd.service(5), FileDescriptorStoreMax=.
class keeper {
 public:
  using milliseconds = net::milliseconds;
  enum class pace { limited, urgent };

  /// Both outlive this. `most` descriptors fit into the store.
  keeper(net::reactor& loop, const systemd::notifier& manager, std::size_t most);
  ~keeper();
  keeper(const keeper&) = delete;
  keeper& operator=(const keeper&) = delete;

  /// $FDSTORE, which systemd sets from version 254 on, or what our unit file allows.
  static std::size_t limit_from_environment();

  /// Begins, if there may be a store: with the table of the process before, if there is one, which
  /// is moved from then.
  void open(std::optional<kept_table>& inherited);
  /// From now on finds out whether the store holds what it is given. After everything that the
  /// process before has left was forgotten.
  void watch_over_it();
  /// There is a store, as far as is known: the manager has taken what it was given, and has not
  /// dropped it since.
  bool is_active() const noexcept { return active_; }

  /// The process before has used this name, whatever becomes of it.
  void avoid_name(const std::string& name) { names_in_use_.push_back(name); }
  /// Stores a listener under a name of its own. False if there is no store.
  bool keep_listener(int fd);
  /// The listener of that name is carried on.
  void adopt_listener(const std::string& name) { listeners_.push_back(name); }
  /// True for names that `keep_listener` gives, in any version.
  static bool is_listener_name(const std::string& name);
  void forget_listeners();

  /// A record to be filled in for a connection; nullptr: there is no room, or it is too early for
  /// one more. `urgent` knows no rate.
  kept_record* add(pace how);
  /// Stores the descriptors of a filled record. False, and the record is no more, if the manager
  /// does not listen right now.
  bool store(kept_record& record, std::span<const int> descriptors);
  /// A record's connection came out of the store.
  void count_adopted() noexcept { ++connections_; }
  /// The connection is over: it leaves the store, and then the table.
  void forget(kept_record& record);
  /// Descriptors of that name, which are no connection's of this process, leave the store.
  void forget(const std::string& name);

  /// Waits, for `limit` at most, until the manager has everything.
  void settle(milliseconds limit);

  /// Connections in the store, and how many fit.
  std::size_t connections() const noexcept { return active_ ? connections_ : 0; }
  std::size_t capacity() const noexcept;
  bool is_full() const noexcept { return connections_ + leaving_ >= capacity(); }

 private:
  struct message {
    enum class kind { store, store_and_close, forget };
    kind what;
    std::string name;
    int descriptor = -1;
    kept_record* record = nullptr;
  };

  void say(message next);
  bool say_all();

  const systemd::notifier& manager_;
  std::size_t most_;
  net::reactor& loop_;
  std::optional<kept_table> table_;
  bool active_ = false;
  std::size_t connections_ = 0;
  std::size_t leaving_ = 0;  // names that are still to be forgotten
  std::vector<std::string> listeners_;
  std::vector<std::string> names_in_use_;
  std::deque<message> unsaid_;
  net::watched_fd canary_;
  net::timer retry_;
  double tokens_;
  net::time_point refilled_{};
};

}  // namespace kubelane::proxy
