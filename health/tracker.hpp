#pragma once

#include "health/evidence.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::health {

/// What the cause of a state is about: decides whether connections leave, and what is worth saying
/// again while the state stays.
enum class matter {
  plain,         ///< nothing beyond the state itself
  unauthorized,  ///< ready: 401 or 403
  unverified,    ///< ready: identity could not be checked
  etcd,          ///< not_ready: etcd is among the failed checks
  other,         ///< not_ready: any other failed check
  certificate,   ///< not_ready: expired or not yet valid; no reason to leave
  connection,    ///< not_ready: probes are cut off; no reason to leave
  local,         ///< unknown: this node's own trouble
};

struct tracker_settings {
  int fall = 3;                    ///< soft failures in a row that change the state, >= 1
  int rise = 3;                    ///< passes in a row after a fall, >= 1
  milliseconds interval{1'000};    ///< between two regular probes, > 0
  milliseconds timeout{500};       ///< limit of one phase of a probe
  milliseconds hold_down{10'000};  ///< 0: none
};

/// When a probe began and when its result was there.
struct exchange {
  time_point started{};
  time_point finished{};
};

/// Turns the evidence about one upstream into its state, with a cause and a time, and says when to
/// probe next. Pure.
///
/// Acts at once on hard evidence: refused, host silent, shutting down, a wrong certificate; and on
/// a pass or 401/403 as long as it was never ready, or local trouble hid it. Time-outs, cut-off
/// probes and other answers than 200 are soft: they need `fall` in a row, so that one check in ten
/// failing changes nothing. From a worse state (refused, hung, dead, impostor) any answer is proof
/// of life: one that is not 200 leads to `not_ready` at once. A dead upstream stays dead while
/// probes time out.
///
/// `fall` time-outs in a row are `hung` if no byte was heard since the earliest of them began, else
/// `slow`; bytes heard later turn hung into slow at once, silence turns slow into hung. However
/// hastily it was probed, it is not hung sooner than `fall` probes take at their usual pace: a
/// server may be paused for two seconds.
///
/// After a fall from `ready`, `rise` passes in a row make it ready again, but not before the
/// hold-down is over: nothing after the first fall, then once, twice, four times `hold_down`, at
/// most a minute (or `hold_down`, if that is longer), counting the falls of the last ten minutes.
///
/// Answers other than 200 less than 400 ms apart count once: the server may have asked etcd once
/// for all of them.
///
/// A time-out during which this process' own loop was late by more than half the limit is
/// discarded, but never more than three in a row.
class tracker {
 public:
  explicit tracker(tracker_settings settings);
  void configure(tracker_settings settings);

  /// A DNS name without an address: stays `unresolved` for ever.
  static tracker without_address(tracker_settings settings);

  enum class effect {
    discarded,      ///< ask again at once; nothing was learnt
    passed,         ///< 200, 401 or 403
    first_failure,  ///< the first of a row
    failed,         ///< a further one
    hidden,         ///< local trouble: says nothing of the upstream
  };
  effect record(const probe_report& report, time_point now);

  /// A probe that timed out, and was recorded so, was answered after all, not by a pass. It counts
  /// no second time, but says what the time-outs did not: once there are `fall` failures in a row,
  /// or the state is not good anyway, it decides. Older than the last pass, it says nothing.
  void answered_late(const probe_report& report, time_point now);

  /// A client's dial was refused. Returns whether this is the first failure of a row.
  bool dial_refused(time_point now);
  /// A client's dial timed out or was cut off: doubt, no more.
  void dial_failed();
  /// The kernel says that the host is silent. Returns as dial_refused.
  bool host_silent(std::string detail, time_point now);
  /// Bytes came from it on some connection, most recently at `at`.
  void heard(time_point at);
  /// Client bytes have been unanswered for too long; the suspicion arose at `at`.
  void suspect(time_point at);

  enum class company { others_in_first_tier, none_in_first_tier };
  /// Makes a fallen upstream ready if passes and hold-down allow it; the hold-down is void if no
  /// other upstream is in the first tier. Call after a pass and as time passes.
  void settle(company others, time_point now);

  /// How long to wait before the next probe. `leaving_in`: until the last of its connections have
  /// left, if they are about to. `random01` in [0, 1).
  ///
  /// After a time-out 250 ms, unless slow or hung is settled; after another answer than 200 500 ms
  /// until the state is settled, and denser towards the end while connections are about to leave;
  /// after a cut-off probe at once the first time, then 250 ms; while rising, and in local trouble,
  /// the interval but at most a second; else the interval. The interval is jittered by 20 %, never
  /// longer than configured, and the first one is a random part of it, so that a fleet started
  /// together does not probe in step. A probe asked for in between does not move the regular ones.
  milliseconds next_delay(std::optional<milliseconds> leaving_in, double random01, time_point now);

  state current() const { return state_; }
  matter about() const { return matter_; }
  time_point since() const { return since_; }
  /// In words; empty for a plain `ready`.
  std::string cause(time_point now) const;
  /// From the first soft failure or suspicion on, until a pass; a byte is enough if no probe
  /// failed.
  bool doubtful() const;
  /// Client bytes are unanswered, and no byte or pass came since.
  bool suspected() const { return suspected_.has_value(); }
  /// Passes were seen since it fell.
  bool recovering() const { return passes_ > 0; }
  /// A pass has shown that what its state says is over, though it is not ready yet; until the same,
  /// or anything else, is found again. No reason to take connections away.
  bool acquitted() const { return acquitted_; }
  /// When it was last found hung or dead; epoch: never.
  time_point convicted() const { return convicted_; }
  /// When it became ready after a fall; nothing if it is not ready or never fell.
  std::optional<time_point> risen() const { return risen_; }
  /// Its last answer came from a server whose identity was verified, or that need not be.
  bool answered() const { return answered_; }
  bool was_ready() const { return ever_ready_; }
  /// Soft failures or hard evidence since the last pass.
  bool failing() const { return failing_; }
  /// Its last probe passed, and nothing is held against it since.
  bool vouches() const { return !failing_ && local_ == 0 && last_pass_.started != time_point{}; }
  /// The last pass; epoch before the first.
  exchange last_pass() const { return last_pass_; }
  /// The last pass was a 200, not a 401 or 403.
  bool passed_plainly() const { return pass_matter_ != matter::unauthorized; }
  /// When the first pass since the last failure was known; meaningful while it is not failing.
  time_point passing_since() const { return passing_since_; }
  /// When the last failure was known; epoch before the first.
  time_point last_failure() const { return last_failure_; }
  /// First evidence of its silence: the start of the first probe after the last byte heard that
  /// timed out, or the suspicion, if that is earlier; of a dead one at latest when the kernel said
  /// so. Nothing if it is not silent.
  std::optional<time_point> silence() const;
  /// The first answer of the present row of answers other than 200; those that say `shutdown`, and
  /// refusals after them; those that name etcd.
  const std::optional<exchange>& first_bad() const { return first_bad_; }
  const std::optional<exchange>& first_leaving() const { return first_leaving_; }
  const std::optional<exchange>& first_etcd() const { return first_etcd_; }

 private:
  bool fail(time_point known);
  void pass(const probe_report& report, time_point now);
  void fail(const probe_report& report, time_point now);
  void time_out(const probe_report& report, time_point now);
  void answer_badly(const probe_report& report, time_point now);
  void note_bad_answer(const probe_report& report);
  void judge_bad_answer(const probe_report& report, time_point now);
  void cut_off(const probe_report& report, time_point now);
  void shut_down(const probe_report& report, time_point now);
  void refuse(exchange when, time_point now);
  void die(std::string detail, time_point evidence, time_point now);
  void reject(const probe_report& report, time_point now);
  void hide(const probe_report& report, time_point now);
  bool discards(const probe_report& report);
  void become_ready(time_point now);
  void become(state next, matter about, std::string cause, time_point now);
  void note_fall(time_point now);
  void end_silence();
  bool is_worse() const;
  matter mixed_matter() const;
  std::optional<time_point> silence_so_far() const;
  milliseconds usual_time() const;
  bool asks_soon_after_time_out(bool leaving) const;
  milliseconds interval(double random01, time_point now);
  milliseconds pace(std::optional<milliseconds> leaving_in) const;

  tracker_settings settings_;
  state state_ = state::unknown;
  matter matter_ = matter::plain;
  std::string cause_;
  time_point since_{};
  bool ever_ready_ = false;
  bool answered_ = false;
  std::optional<time_point> risen_;

  bool failing_ = false;
  bool acquitted_ = false;
  time_point convicted_{};
  int failures_ = 0;   // soft ones in a row
  int time_outs_ = 0;  // of these at the end of the row
  int cut_offs_ = 0;   // likewise
  int local_ = 0;      // local troubles in a row
  int discarded_ = 0;  // in a row
  int passes_ = 0;     // in a row since it fell
  outcome last_ = outcome::passed;
  matter pass_matter_ = matter::plain;
  std::string pass_cause_;

  time_point last_heard_{};
  std::vector<time_point>
      silent_;  // starts of the time-outs since the last byte heard, earliest first
  std::optional<time_point> suspected_;
  bool dial_doubt_ = false;
  time_point dead_evidence_{};
  std::optional<exchange> first_bad_;
  std::optional<exchange> first_leaving_;
  std::optional<exchange> first_etcd_;
  time_point counted_bad_{};  // start of the last counted answer other than 200
  exchange last_pass_;
  time_point passing_since_{};
  time_point last_failure_{};

  std::vector<time_point> falls_;  // of the last ten minutes
  time_point held_until_{};
  std::optional<time_point> scheduled_;  // of the next regular probe
};

}  // namespace kubelane::health
