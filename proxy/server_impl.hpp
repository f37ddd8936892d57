#pragma once

#include "config/diff.hpp"
#include "health/checker.hpp"
#include "net/reactor.hpp"
#include "net/resolve.hpp"
#include "proxy/data_path.hpp"
#include "proxy/inheritance.hpp"
#include "proxy/keeper.hpp"
#include "proxy/membership.hpp"
#include "proxy/server.hpp"
#include "proxy/status_json.hpp"
#include "proxy/upstream_pool.hpp"
#include "systemd/notify.hpp"
#include "telemetry/admin.hpp"
#include "telemetry/metrics.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace kubelane::proxy {

namespace asio = boost::asio;

inline health::checker_key key_of(upstream_id id) {
  return static_cast<health::checker_key>(id);
}
inline upstream_id id_of(health::checker_key key) {
  return static_cast<upstream_id>(key);
}

std::int64_t unix_now_ms();

/// What `server` owns, in construction order. Split over server.cpp (life), server_listen.cpp (its
/// ports), server_restart.cpp (what outlives the process), server_effects.cpp (events to log lines,
/// metrics and actions) and server_admin.cpp (what the admin port answers).
struct server::impl {
  impl(config::config initial, server_options given, const systemd::notifier& service_manager,
       telemetry::log& to);

  // server.cpp: life
  std::optional<std::string> open(inheritance from_before);
  outcome run();
  void start();
  void note_configuration(const std::string& text);
  void recall_events();
  void on_signal();
  static void on_turn(void* self);
  void on_tick(time_point now);
  enum class reason_to_reload { asked, file_changed };
  void reload(reason_to_reload why);
  bool take(config::config next, const config::changes& changes);
  void resolve_names();
  void reconcile(const std::vector<lookup>& lookups);
  void stop();
  void finish();
  // server_listen.cpp: its ports
  std::optional<std::string> open_listeners(std::vector<inherited_listener> from_before);
  std::vector<net::endpoint> adopt_listeners(std::vector<inherited_listener> from_before);
  bool listen_on(const net::endpoint& address, const boost::system::result<int>& opened,
                 std::string& failure);
  void open_admin();
  void retry_listeners();
  std::optional<std::string> take_ports();
  void await_ports(const net::endpoint& busy);
  std::string describe_wait() const;
  // server_restart.cpp: what outlives the process
  void release_unwanted(inheritance& in);
  void note_inherited_upstreams();
  void keep_until_answered();
  void adopt_connections();
  void add_inherited(std::vector<wanted_upstream>& wanted);
  void note_lookup(const std::string& host);
  void hand_over();
  void watch_store();
  void tell_status(time_point now);
  void tell_ready();
  void watch_events();
  // server_effects.cpp
  void apply_effects();
  void apply(const probe_now& what);
  void apply(const upstream_changed& what);
  void apply(const reset_connections& what);
  void apply(const drain_connections& what);
  void apply(const call_off& what);
  void apply(const would_close& what);
  void apply(const upstream_gone& what);
  void note_whole_state();
  data_path_observer observer();
  health::checker_events checker_events();
  void note_probe(upstream_id id, const health::probe_report& report);
  const std::string& name_of(upstream_id id) const;
  void on_bug(std::exception_ptr failure);

  // server_admin.cpp
  telemetry::admin_response answer(std::string_view path);
  telemetry::admin_response readiness();
  telemetry::admin_response status_document();
  telemetry::admin_response page() const;
  std::int64_t unix_ms_of(time_point at);
  telemetry::admin_response metrics_text();
  bool ready(const pool_status& status) const;
  bool may_ask_metrics(const asio::ip::address& client);

  config::config settings;
  server_options options;
  telemetry::log& log;
  asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};  // one thread: it locks nothing
  net::reactor reactor{io};
  std::mt19937_64 random{std::random_device{}()};
  std::uniform_real_distribution<double> uniform{0.0, 1.0};
  telemetry::metrics metrics{KUBELANE_VERSION};
  const systemd::notifier& notifier;
  keeper store;
  upstream_pool pool;
  data_path relays;
  health::checker checker;
  net::resolver resolver;
  telemetry::admin admin;
  asio::signal_set signals;
  asio::steady_timer listen_retry;
  asio::steady_timer port_wait;
  asio::steady_timer leave_limit;

  std::vector<known_address> known_addresses;     // of DNS names
  std::vector<std::string> last_warnings;         // about members, so that each is said once
  std::map<std::string, time_point> next_lookup;  // by host; max: under way, or none is needed
  std::map<upstream_id, std::string> names;       // those the checker probes or connections use
  std::vector<net::endpoint> wanted_listeners;    // not open yet: their address has to appear
  std::vector<net::endpoint> awaited_ports;       // not open while another process holds one
  std::optional<net::endpoint> busy_port;         // that one
  std::optional<time_point> waiting_since;
  std::vector<std::pair<net::endpoint, telemetry::admin_scope>> wanted_admin;
  std::set<asio::ip::address> refused_metrics;  // so that each is said once
  std::deque<state_change> events;  // the last thousand, those of processes before included
  notes_by_upstream notes;
  const std::int64_t started_ms = unix_now_ms();
  std::int64_t wall_offset_ms = 0;  // Unix time minus the steady clock's
  time_point last_tick{};
  time_point last_watch{};
  std::optional<time_point> watchdog_due;
  std::vector<inherited_connection> inherited;  // until `start`
  std::vector<net::endpoint>
      inherited_upstreams;                      // until it is known whether they are still wanted
  std::map<std::string, int> unanswered_names;  // DNS names, and how many answers are missing
  outcome how_it_ends = outcome::stopped;
  bool fallback = false;  // on the last good configuration
  bool events_are_kept = true;
  bool store_was_active = false;
  bool store_is_nearly_full = false;
  bool owes_ready = false;  // the manager did not listen when it was to be told
  std::string told_status;
  time_point last_status{};
  bool configuration_is_good = true;  // what the file said when it was last read
  bool panic = false;
  bool withheld = false;
  bool stopping = false;
};

}  // namespace kubelane::proxy
