#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"
#include "net/reactor.hpp"
#include "proxy/end_reason.hpp"
#include "proxy/inheritance.hpp"
#include "proxy/keeper.hpp"
#include "proxy/listener.hpp"
#include "proxy/upstream_pool.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kubelane::proxy {

/// What the data path tells: once a connection or a dial, never once a transfer. What is left empty
/// is not told. None may destroy the data path.
struct data_path_observer {
  /// A client's connection is over; without an upstream if it never got one.
  std::function<void(std::optional<upstream_id>, end_reason, milliseconds duration)>
      connection_ended;
  /// How a dial ended. One that connected and was lost before its first byte tells both.
  std::function<void(upstream_id, health::dial_result, std::chrono::microseconds)> dial_ended;
  /// A second server was tried beside the first: "dial" or "first_flight".
  std::function<void(const char* kind)> hedged;
  /// A client was turned away (descriptors: was left waiting): limit, reserved, descriptors,
  /// all_down.
  std::function<void(const char* reason)> rejected;
  /// A connection was made to leave its upstream: hung, dead, etcd, shutdown, refused, other,
  /// removed.
  std::function<void(upstream_id, const char* cause)> connection_reset;
  /// Something for the log, in words; at most one of a kind in ten seconds.
  std::function<void(const std::string& words)> problem;
};

/// The clients' connections: accepts them, finds each a server, relays, and lets them leave when
/// the pool says so. Owns its listeners and every connection.
class data_path {
 public:
  /// `loop` and `pool` outlive this. `random01` gives uniform numbers in [0, 1). The descriptor
  /// limit of the process is read here and in `configure`.
  data_path(net::reactor& loop, upstream_pool& pool, const config::config& settings,
            data_path_observer observer, std::function<double()> random01);
  /// Closes everything at once, telling nobody.
  ~data_path();
  data_path(const data_path&) = delete;
  data_path& operator=(const data_path&) = delete;

  /// New settings; those of `dial` and `relay` hold for living connections too.
  void configure(const config::config& settings);

  /// Accepts from a listening socket, which is taken over; another process may hold it too.
  void listen(int listening_fd, net::watched_fd::copies elsewhere = net::watched_fd::copies::none);
  /// Closes the listeners, after accepting who has connected already; connections stay.
  void stop_accepting();

  /// From now on connections older than a second are kept in `store`, which outlives this.
  void keep_in(keeper& store);
  /// Goes on with a client of the process before; one without a server is dialled again. The pool
  /// knows its upstream. Needs a store.
  void adopt(const inherited_connection& connection, std::optional<upstream_id> upstream);
  /// Leaves everything to the next process: what can be kept and is not yet is stored now, whatever
  /// its age, and the rest is reset. The owner ends the process.
  void hand_over();

  // What the pool wants. All connections that exist now to that upstream; later ones are not meant.
  void apply(const reset_connections& wanted);
  void apply(const drain_connections& wanted);
  void apply(const call_off& wanted);

  /// The end: clients without a server are reset now, the others leave in order, each at random
  /// within `spread`, and are reset if that takes longer than a second.
  void close_all(milliseconds spread);

  /// Clients, with a server or being dialled.
  std::size_t connections() const;
  /// Clients that have no server yet.
  std::size_t dialling() const;

  struct impl;

 private:
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::proxy
