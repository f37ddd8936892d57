#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace kubelane::proxy {

using health::milliseconds;
using health::time_point;

/// Why an upstream's connections have to leave.
enum class reason { none, hung, dead, etcd, other, shutdown, refused, removed };

const char* to_string(reason value) noexcept;

/// hung and dead: reset. All others leave in order.
constexpr bool is_reset(reason why) {
  return why == reason::hung || why == reason::dead;
}

/// What speaks for it.
struct grounds {
  reason why = reason::none;
  time_point evidence{};  ///< first evidence: another upstream's probe has to start later
  time_point first{};     ///< when the first failure was known: drains are timed from here
};

/// Another upstream that can take the connections: it answered a probe, and none failed since.
struct witness {
  time_point started{};   ///< of the probe it answered
  time_point finished{};  ///< the upstream in question has to fail once more after this
  /// It failed no probe since the first evidence. If it did, everything failed for a while (the
  /// node's network, an election): more is asked of the evidence then.
  bool steady = true;
};

struct closing_rules {
  int fall = 3;
  milliseconds hung_after{3'000};
  milliseconds hung_spread{100};
  milliseconds hold_down{10'000};  ///< between two mass resets
  config::drain drain;
  /// A witness may come so much after the due time without being late: the time a probe takes.
  milliseconds grace{1'000};
  /// failover.mode observe: say it once; the connections stay, so it would come again and again.
  bool observe = false;
};

/// Decides when one upstream's connections are reset or drained. Pure.
///
/// Nothing is closed unless a witness exists. A reset needs in addition that the upstream failed a
/// probe that began after the witness had answered: once, or `fall` times if the witness itself
/// had failed meanwhile. A drain that was due without a witness, or whose witness had failed
/// meanwhile (etcd and other), waits its full time again. In panic mode nothing but a dead
/// upstream's connections is closed.
class closing {
 public:
  struct situation {
    std::optional<witness> other;
    int confirmations = 0;  ///< failed probes of this one begun after the witness had answered
    bool panic = false;
    std::size_t connections = 0;
  };
  struct order {
    reason why = reason::none;
    milliseconds spread{0};
    milliseconds busy{0};
  };
  struct advice {
    bool call_off = false;    ///< what was ordered, and is not done yet, is void
    bool ask_it = false;      ///< probe this upstream at once
    bool ask_others = false;  ///< probe all others at once
    std::optional<order> close;
  };

  advice review(const grounds& now_known, const situation& seen, const closing_rules& rules,
                time_point now);

  /// A witness must have failed nothing since then to be steady.
  time_point steady_since() const { return restarted_.value_or(grounds_.evidence); }
  /// For an etcd drain, all witnesses' probes have to begin later than this.
  static time_point etcd_threshold(time_point first);
  /// Due, but nobody can take the connections.
  bool withheld() const { return withheld_; }
  /// Ordered, and still valid.
  bool ordered() const { return ordered_.has_value(); }
  /// Until the last connection has left, if they are about to; nothing while withheld.
  std::optional<milliseconds> leaving_in(time_point now) const;

 private:
  bool begin(const grounds& next, const closing_rules& rules);
  bool restarts(const situation& seen, const closing_rules& rules, time_point now);
  void repeat(const situation& seen, const closing_rules& rules, time_point now);

  grounds grounds_;
  time_point due_{};
  bool withheld_ = false;
  bool others_asked_ = false;
  std::optional<time_point> restarted_;
  std::optional<time_point> ordered_;
  order last_order_;
  std::optional<time_point> last_reset_;
};

}  // namespace kubelane::proxy
