#pragma once

#include "net/reactor.hpp"
#include "proxy/end_reason.hpp"
#include "proxy/kept_table.hpp"
#include "proxy/pipe_pool.hpp"
#include "proxy/pump.hpp"
#include "proxy/traffic.hpp"

#include <boost/intrusive/list.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace kubelane::proxy {

class relay;

using relay_hook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// What all relays share; owned by the data path, which outlives them.
struct relay_context {
  net::reactor& loop;
  pipe_pool& pipes;
  const config::relay& limits;
  void* owner;
  /// The relay is over, its sockets are closed. The owner destroys it, not before the turn ends.
  void (*ended)(void* owner, relay& over, end_reason why);
  /// It leaves its upstream because it had to: a reset or a drain came due.
  void (*forced)(void* owner, upstream_id id, const char* cause);
  /// A pump found no pipe: the owner calls `resume` when there may be one.
  void (*starved)(void* owner, relay& waiting);
  /// A short read was not followed by another: the owner calls `resume` a little later.
  void (*unproven)(void* owner, relay& reader);
  /// Something may come that no event tells: the owner calls `check` once a second from now on, for
  /// as long as that wants it.
  void (*restless)(void* owner, relay& busy);
};

/// When and how a connection has to leave its upstream.
struct departure {
  enum class manner : std::uint8_t { stay, reset, drain };
  manner how = manner::stay;
  end_reason why = end_reason::drained;
  const char* cause = "";   ///< a literal, for the metric
  time_point busy_until{};  ///< a drain waits for a quiet moment up to this
};

/// One client connected to one server: two pumps, until both directions ended.
///
/// - The end of one side is passed on behind the last byte; the other direction goes on.
/// - A reset of one side is passed on as a reset when what was received before it has been
///   delivered and acknowledged; at the latest after 5 s.
/// - No idle limit, except for a pair that is closed on one side and silent on the other.
///
/// Between turns no byte is in this process' memory. Once kept (`kept_as`) none ever is: its
/// sockets and pipes are in another process too, and what they do not show is in a record; whoever
/// has both can go on.
class relay {
 public:
  /// What the dial leaves behind. The watches may still point to it.
  struct beginning {
    net::watched_fd client;
    net::watched_fd server;
    pump_end client_seen;  ///< what events have said so far
    pump_end server_seen;
    std::unique_ptr<traffic> share;
    time_point accepted{};
    bool client_is_remote = false;  ///< not on this host
  };
  /// Of a relay that the process before has kept.
  struct remains {
    kept_record* record;
    int up;  ///< pipes, taken over
    int down;
  };

  relay(const relay_context& context, beginning from);
  /// Goes on where the other process was.
  relay(const relay_context& context, beginning from, const remains& kept);
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  /// Moves what can be moved: to begin with, or because something may have changed that no event
  /// tells. May end the relay.
  void resume();
  /// Leave at `due`; replaces an earlier departure, unless that is under way.
  void leave_at(time_point due, const departure& how);
  /// Stay after all, unless it is leaving already.
  void stay();
  enum class attention { needed, none };
  /// What no event tells. May end the relay. An idle one needs no attention, until it says so.
  attention check(time_point now);
  bool is_over() const noexcept { return phase_ == phase::over; }
  /// Ends it now, with a reset of both sides.
  void abort(end_reason why);

  /// All that has to be kept of it: client, server, pipe up, pipe down. Nothing when it is over, or
  /// out of descriptors.
  std::optional<std::array<int, 4>> descriptors_to_keep();
  /// Writes down what they do not show.
  void describe(kept_record& to) const;
  /// Another process holds the descriptors too, and `record` has to be true at any moment.
  void kept_as(kept_record& record) noexcept;
  kept_record* record() const noexcept { return record_; }

  upstream_id upstream() const noexcept { return share_->id(); }
  time_point accepted() const noexcept { return accepted_; }
  /// Most connections are over while they still are: what costs a call can wait until then.
  bool is_young(time_point now) const noexcept { return now - accepted_ < milliseconds(1'000); }
  /// When a short read was last left unproven.
  time_point unproven_since() const noexcept { return last_bytes_; }

  relay_hook everyone;  ///< for the owner: all relays
  relay_hook starving;  ///< for the owner: those that wait for a pipe
  relay_hook doubtful;  ///< for the owner: those with an unproven short read
  relay_hook restless;  ///< for the owner: those that have to be checked
  time_point check_due{};

 private:
  enum class phase : std::uint8_t {
    flowing,
    leaving,        // delivers what is in flight, says FIN both ways, waits for theirs
    passing_reset,  // delivers what came before the reset
    over,
  };
  struct side {
    net::watched_fd socket;
    pump_end seen;
    bool told_end = false;  // FIN was sent to it
    bool owes_acknowledgement =
        false;  // bytes were sent to it since they were last all acknowledged
    time_point owing_since{};
  };

  static void on_client(void* self, std::uint32_t events);
  static void on_server(void* self, std::uint32_t events);
  static void on_timer(void* self);
  static void on_turn(void* self);

  class step;
  void on_event(side& at, std::uint32_t events);
  void run(std::size_t budget);
  pump_status move(side& from, side& to, std::size_t budget);
  bool pass_end_on(side& to);
  void flow(std::size_t budget);
  void wait_for(pump_status up, pump_status down);
  void begin_leaving();
  void enter_leaving();
  void leave(std::size_t budget);
  bool has_left(side& from, side& to, std::size_t budget);
  void begin_passing_reset(side& broken);
  void pass_reset(std::size_t budget);
  bool is_dead(side& at, time_point now);
  bool needs_attention() const noexcept;
  void become_restless() {
    if (!restless.is_linked()) context_.restless(context_.owner, *this);
  }
  void depart();
  void finish(end_reason why);
  void note(std::uint32_t flag) noexcept;
  void note_errors() noexcept;
  void tell_end(side& to);
  end_reason why_broken(const side& broken) const;
  std::uint32_t turn() const { return static_cast<std::uint32_t>(context_.loop.turn_number()); }
  pump& pump_from(const side& from) noexcept { return &from == &client_ ? up_ : down_; }
  side& other(const side& of) noexcept { return &of == &client_ ? server_ : client_; }

  const relay_context& context_;
  side client_;
  side server_;
  pump up_;    // client to server
  pump down_;  // server to client
  std::unique_ptr<traffic> share_;
  net::timer timer_;  // the departure; then the limit of the phase
  net::deferred rest_;
  departure departure_;
  time_point accepted_;
  time_point last_bytes_;
  time_point limit_{};  // of passing a reset on
  milliseconds pause_{1};
  side* first_ended_ = nullptr;
  side* broken_ = nullptr;
  phase phase_ = phase::flowing;
  bool client_is_remote_;
  bool keeps_alive_ = false;
  kept_record* record_ = nullptr;
};

}  // namespace kubelane::proxy
