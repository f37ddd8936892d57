#pragma once

#include "net/reactor.hpp"
#include "proxy/dial_plan.hpp"
#include "proxy/end_reason.hpp"
#include "proxy/pump.hpp"
#include "proxy/relay.hpp"
#include "proxy/traffic.hpp"
#include "proxy/upstream_pool.hpp"

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kubelane::proxy {

class session;

/// What all sessions share; owned by the data path, which outlives them.
struct session_context {
  net::reactor& loop;
  upstream_pool& pool;
  traffic_ledger& ledger;
  const config::dial& limits;
  hedge_budget& budget;
  std::span<std::uint8_t> scratch;  ///< flight_limit + 1 bytes; for the length of one call
  void* owner;
  /// A server was found; the session is over. The owner destroys it when the turn ends.
  void (*connected)(void* owner, session& over, relay::beginning from);
  /// None was; the client is gone. As above.
  void (*ended)(void* owner, session& over, end_reason why);
  void (*dial_ended)(void* owner, upstream_id id, health::dial_result result,
                     std::chrono::microseconds took);
  void (*hedged)(void* owner, const char* kind);
  /// This node's own trouble: the error of a connect or of opening a socket.
  void (*local_trouble)(void* owner, int error);
  /// False: everything is down, and dials are limited.
  bool (*may_dial)(void* owner);
  bool (*all_slow)(void* owner);
};

/// A client that has no server yet: does what the dial plan decides.
///
/// The client's first bytes are looked at, sent, and stay in its socket until a server answers; so
/// a session has nothing to lose but the socket.
class session {
 public:
  /// `client` is registered already, and its watch is taken over.
  session(const session_context& context, net::watched_fd client, bool client_is_remote,
          std::vector<candidate> candidates);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  /// Dials the first candidate. May end the session.
  void begin();
  /// The server of an attempt is hung or dead: as if the attempt had ended.
  void give_up_on(upstream_id id);
  /// Resets the client.
  void abort(end_reason why);
  /// The process ends, and the next one may dial for this client. If a server has bytes that must
  /// not be sent twice, a relay begins with it instead, and nothing is returned; else the session
  /// is over, and the client's socket is the caller's.
  std::optional<int> hand_over();
  bool client_is_remote() const noexcept { return client_is_remote_; }

  time_point accepted() const noexcept { return accepted_; }

  relay_hook everyone;  ///< for the owner: all sessions

 private:
  struct attempt {
    session* owner;
    std::size_t index;  // of the candidate
    net::watched_fd socket;
    std::unique_ptr<traffic> share;
    pump_end seen;
    time_point started;
    bool is_connected = false;
    bool is_over = false;  // its socket is closed; destroyed when no loop runs over the attempts
    std::size_t sent = 0;  // bytes of the flight
  };
  using attempt_ptr = std::unique_ptr<attempt>;

  static void on_client(void* self, std::uint32_t events);
  static void on_server(void* self, std::uint32_t events);
  static void on_timer(void* self);

  void carry_out();
  void do_action(const dial_action& next);
  void dial(const dial_action& next);
  bool is_still_wanted(upstream_id id);
  void connect_to(attempt& to, const net::endpoint& address);
  void note_connected(attempt& to);
  void connect_failed(attempt& to, int error);
  void lost(attempt& gone);
  void look_at_client();
  void look_for_answer(attempt& at);
  void send_flight(attempt& to, std::span<const std::uint8_t> bytes);
  void send_flight(attempt& to);
  std::optional<std::size_t> peek();
  void ask_acknowledged(const attempt& at);
  void hand_over(attempt& to);
  void report(const attempt& of, health::dial_result result);
  void drop(attempt& gone);
  void finish(end_reason why);
  attempt* find(std::size_t index);
  attempt* find_spent();

  const session_context& context_;
  net::watched_fd client_;
  pump_end seen_;  // of the client
  std::vector<candidate> candidates_;
  boost::container::small_vector<attempt_ptr, 2> attempts_;
  dial_plan plan_;
  net::timer timer_;
  time_point accepted_;
  std::size_t flight_size_ = 0;
  bool client_is_remote_;
  bool over_ = false;
};

}  // namespace kubelane::proxy
