#pragma once

#include "proxy/admission.hpp"
#include "proxy/data_path.hpp"
#include "proxy/relay.hpp"
#include "proxy/session.hpp"

#include <array>
#include <memory>
#include <vector>

namespace kubelane::proxy {

/// What `data_path` owns. Split over data_path.cpp (clients come, and how they leave) and
/// data_path_events.cpp (what relays and sessions report).
struct data_path::impl {
  impl(net::reactor& reactor, upstream_pool& upstreams, const config::config& settings,
       data_path_observer to, std::function<double()> random);
  ~impl();

  // data_path.cpp
  void accepted(int client, const listener& from);
  void begin_session(net::watched_fd client, bool is_remote);
  void turn_away(int client, const char* why);
  bool may_accept();
  void pause_accepting(int error);
  void try_to_accept();
  void leave(upstream_id id, milliseconds spread, departure how);
  void stay(upstream_id id);
  void close_all(milliseconds spread);
  time_point within(milliseconds spread);
  void check_some();
  void check(relay& next);
  void give_memory_back();
  void look_again();
  void feed_starving();

  // data_path_keeping.cpp
  bool keep(relay& living, keeper::pace how);
  std::optional<net::endpoint> address_of(upstream_id id) const;
  void hand_over();
  void hand_over_client(session& dialling, time_point limit);
  bool keep_client(int client, bool is_remote);
  template <typename Attempt>
  bool until(time_point limit, const Attempt& attempt);
  void adopt(const inherited_connection& connection, std::optional<upstream_id> upstream);

  // data_path_events.cpp
  relay_context make_relay_seam();
  session_context make_session_seam();
  void relay_ended(relay& over, end_reason why);
  void session_connected(session& over, relay::beginning from);
  void begin(relay* added);
  void session_ended(session& over, end_reason why);
  void starved(relay& waiting);
  void unproven(relay& reader);
  void restless(relay& busy);
  void trouble_here(int error);
  bool may_dial();

  // When to look at a socket after a short read, unless an event comes before: rarely enough to
  // cost nothing beside the reads themselves.
  static constexpr milliseconds look_period{20};
  static constexpr milliseconds check_again_after{1'000};

  using relay_list =
      boost::intrusive::list<relay,
                             boost::intrusive::member_hook<relay, relay_hook, &relay::everyone>,
                             boost::intrusive::constant_time_size<false>>;
  using doubtful_list =
      boost::intrusive::list<relay,
                             boost::intrusive::member_hook<relay, relay_hook, &relay::doubtful>,
                             boost::intrusive::constant_time_size<false>>;
  using starving_list =
      boost::intrusive::list<relay,
                             boost::intrusive::member_hook<relay, relay_hook, &relay::starving>,
                             boost::intrusive::constant_time_size<false>>;
  using restless_list =
      boost::intrusive::list<relay,
                             boost::intrusive::member_hook<relay, relay_hook, &relay::restless>,
                             boost::intrusive::constant_time_size<false>>;
  using session_list =
      boost::intrusive::list<session,
                             boost::intrusive::member_hook<session, relay_hook, &session::everyone>,
                             boost::intrusive::constant_time_size<false>>;

  net::reactor& loop;
  upstream_pool& pool;
  config::config settings;
  data_path_observer observer;
  std::function<double()> random01;

  descriptor_guard descriptors;
  pipe_pool pipes;
  traffic_ledger ledger;
  hedge_budget budget;
  pool_view view;
  rate_limit dials_while_down{90};
  problem_log problems;
  std::array<std::uint8_t, flight_limit + 1> scratch{};

  keeper* store = nullptr;
  std::vector<std::unique_ptr<listener>> listeners;
  relay_list relays;
  session_list sessions;
  doubtful_list doubtful;
  starving_list starving;
  restless_list to_check;  // the one that is due first in front
  std::size_t relay_count = 0;
  std::size_t session_count = 0;
  std::size_t most_connections = 0;  // since memory was last given back
  bool paused = false;
  bool descriptors_are_scarce = false;

  net::timer checking;   // relays, some at a time
  net::timer looking;    // at short reads
  net::timer feeding;    // pumps without a pipe
  net::timer accepting;  // after a pause

  relay_context relay_seam;
  session_context session_seam;
};

}  // namespace kubelane::proxy
