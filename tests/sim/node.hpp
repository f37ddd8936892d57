#pragma once

#include "network.hpp"
#include "prober.hpp"
#include "proxy/upstream_pool.hpp"

#include <map>
#include <string>
#include <vector>

namespace kubelane::sim {

/// A connection that was closed by kubelane.
struct closing_seen {
  time_point at;
  std::size_t server;
  std::string cause;
  bool served;  ///< its server still answered requests
};

/// One client connection and what it does.
struct client {
  std::optional<std::size_t> server;  ///< nothing: it tries again at `next_dial`
  time_point next_dial{};
  proxy::upstream_id id{};
  milliseconds every{0};       ///< between an answer and the next request; 0: it never asks
  milliseconds processing{2};  ///< how long its requests take the server
  std::optional<exchange> waiting;
  time_point next_request{};
  time_point last_byte{};
  std::optional<time_point> leaves;  ///< when it is to be reset or drained
  std::optional<time_point> latest;  ///< of a busy one that is to be drained
  std::string cause;
};

/// One worker: the real pool, and models of the checker and of the data path.
class node {
 public:
  node(world& in, const config::config& settings);

  /// Clients that send a request `every` so long after the last answer (0: never), spread as the
  /// pool wants.
  void connect_clients(int count, milliseconds every, milliseconds processing = milliseconds(2));
  /// A dial of this server is refused.
  void refuse_a_client(std::size_t server);
  /// Runs until then; `stalled` tells whether kubelane gets no CPU.
  void run_until(time_point end);
  bool stalled = false;
  /// Fresh connections: one every so often; 0: none.
  milliseconds fresh_every{0};

  proxy::upstream_pool& pool() { return pool_; }
  health::state state_of(std::size_t server) const;
  std::size_t clients_on(std::size_t server) const;
  proxy::pool_status status() const { return pool_.status(in_.now); }

  std::vector<closing_seen> closings;
  std::vector<proxy::upstream_changed> changes;
  int reset_orders = 0;
  int drain_orders = 0;
  int would_close_orders = 0;
  int probes = 0;
  int fresh_failed = 0;
  milliseconds fresh_slowest{0};

 private:
  void step();
  void step_probe(std::size_t server);
  void step_client(client& who);
  void step_closing(client& who);
  void drop(client& who);
  void redial(client& who);
  void connect(client& who);
  /// Dials the candidates in turn as the data path does; how long that took, or nothing.
  std::optional<milliseconds> dial(proxy::upstream_id& id);
  void apply_effects();
  void apply(const proxy::effect& what);
  void schedule(proxy::upstream_id id, const std::string& cause, milliseconds spread,
                milliseconds busy);
  std::size_t server_of(proxy::upstream_id id) const { return servers_.at(id); }

  world& in_;
  config::config settings_;
  proxy::upstream_pool pool_;
  std::map<proxy::upstream_id, std::size_t> servers_;
  std::vector<proxy::upstream_id> ids_;
  std::vector<prober> probers_;
  std::vector<time_point> next_probe_;
  std::vector<bool> fresh_;  // the next probe has to be on a new connection
  std::vector<client> clients_;
  time_point next_tick_;
  time_point next_fresh_;
  milliseconds lag_{0};
};

}  // namespace kubelane::sim
