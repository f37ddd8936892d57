#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"
#include "proxy/client_hello.hpp"

#include <boost/container/small_vector.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kubelane::proxy {

using health::milliseconds;
using health::time_point;

/// What hedges and replays of all connections share, so that a slow fleet is not dialled twice as
/// often: ten tokens, and a tenth of one back for each connection that needed none.
class hedge_budget {
 public:
  bool take() noexcept {
    if (tenths_ < 10) return false;
    tenths_ -= 10;
    return true;
  }
  void give_back_a_tenth() noexcept { tenths_ = tenths_ < full ? tenths_ + 1 : full; }

 private:
  static constexpr int full = 100;
  int tenths_ = full;
};

/// What the shell has to do next for one client. `candidate` is the index in the list it was made
/// from.
struct dial_action {
  enum class kind : std::uint8_t {
    dial,                ///< connect to this candidate
    drop,                ///< close this attempt with a reset and report `result`, if any
    relay,               ///< this attempt serves the client: no other is left
    give_up,             ///< reset the client: nobody is left
    check_acknowledged,  ///< ask the kernel whether the server's has the whole flight, and say so
  };
  enum class reason : std::uint8_t { first, failover, hedge, replay };  ///< of a dial

  kind what;
  std::size_t candidate = 0;
  reason why = reason::first;
  std::optional<health::dial_result> result = std::nullopt;
};

/// The decisions of one client connection before its first server byte.
///
/// Pure: no socket, no clock. The shell says what happened, takes the actions and does them in
/// order; it calls `expired` when `deadline` has come. Each candidate is dialled once, in order.
/// The next one is dialled when
/// - the newest attempt failed, or ended before its first byte (the flight is safe to send again:
///   otherwise a relay would have begun), or took longer than `attempt_timeout` to connect: at
///   once;
/// - the newest attempt has been connecting for `hedge_after`: beside it, for a token;
/// - the newest attempt's server has the whole flight, which is a complete ClientHello, and was
///   silent for `first_answer` (or its kernel did not acknowledge the flight for
///   `attempt_timeout`): beside it, for a token.
/// The first to answer wins. A flight that must not be sent twice is left to a relay as soon as one
/// attempt is connected. When `total_timeout` is over, the client is reset if nobody is connected
/// and left to a relay if somebody is; only if its ClientHello is unanswered, and there is another
/// to send it to, does the dial go on.
class dial_plan {
 public:
  using actions = boost::container::small_vector<dial_action, 6>;

  /// `limits` and `budget` outlive the plan. `start` is when the client was accepted.
  dial_plan(const config::dial& limits, hedge_budget& budget, std::size_t candidates,
            time_point start);

  // What happened. `i` is the candidate of a dial action that was not dropped since.
  void begin(time_point now);
  void connected(std::size_t i, time_point now);
  /// The connect failed (the shell reports why).
  void failed(std::size_t i, time_point now);
  /// Connected, then reset or closed before its first byte.
  void ended(std::size_t i, time_point now);
  /// The first byte came.
  void answered(std::size_t i);
  /// More of the client's first bytes came; they are of this kind now.
  void flight_is(flight kind, time_point now);
  /// Some of the flight was handed to the kernel for this attempt; all there is of it.
  void sending(std::size_t i);
  void sent(std::size_t i, time_point now);
  /// Answers check_acknowledged, if so: the server's kernel had the whole flight at `at`. It is
  /// asked again otherwise.
  void acknowledged(std::size_t i, time_point at);
  /// `all_slow`: every candidate is slow, so that dialling more of them would not help.
  void expired(time_point now, bool all_slow);

  /// When `expired` has to be called, if nothing else happens before.
  std::optional<time_point> deadline() const;
  /// The flight may be sent to attempt `i`, as far as it has come.
  bool may_send(std::size_t i) const;
  /// What the client has sent so far may go to several servers.
  bool may_send_again() const noexcept { return flight_ != flight::other; }
  /// What to do since the last call, in order.
  actions take_actions();
  bool has_actions() const noexcept { return !actions_.empty(); }
  /// A relay or give_up was decided: nothing more will come.
  bool is_done() const noexcept { return done_; }

 private:
  enum class stage : std::uint8_t { untried, connecting, connected, over };
  struct attempt {
    stage at = stage::untried;
    bool sent_some = false;
    bool sent_all = false;
    time_point since{};  // when the stage, or the sending of the flight, began
    std::optional<time_point> has_all =
        std::nullopt;       // the server's kernel acknowledged the whole flight
    time_point check_at{};  // ask about that next
  };

  bool may_dial() const { return !done_ && !queue_.empty(); }
  /// The last candidate may take the whole total to connect.
  bool connects_are_limited() const { return total_over_ || may_dial(); }
  std::optional<time_point> patience_ends() const;
  void lose_patience(time_point now, bool all_slow);
  void dial_next(dial_action::reason why, time_point now);
  void lost(std::size_t i, time_point now);
  void drop(std::size_t i, std::optional<health::dial_result> result);
  void time_out_connecting(time_point now);
  void end_total();
  void give_up();
  void relay(std::size_t i);
  void relay_to_the_one_that_may();
  bool any_alive() const;

  const config::dial& limits_;
  hedge_budget& budget_;
  boost::container::small_vector<attempt, 4> attempts_;     // by candidate
  boost::container::small_vector<std::uint32_t, 4> queue_;  // not tried yet, in order
  actions actions_;
  time_point total_end_;
  time_point token_retry_{};  // the budget was empty: ask again then
  flight flight_ = flight::empty;
  std::size_t newest_ = 0;
  bool needed_token_ = false;
  bool total_over_ = false;
  bool done_ = false;
};

}  // namespace kubelane::proxy
