#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"
#include "net/endpoint.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

namespace kubelane::health {

/// The owner's number for an upstream; never reused.
using checker_key = std::uint32_t;

/// What the checker learns. Called on its loop; each may call the checker back.
struct checker_events {
  /// A probe ended; returns the time to the next one.
  std::function<milliseconds(checker_key, const probe_report&)> on_report;
  /// The upstream's host is silent, says the kernel.
  std::function<void(checker_key, const std::string& detail)> on_host_silent;
  /// Bytes of the upstream came after their probe had been given up.
  std::function<void(checker_key)> on_heard;
  /// A probe that was reported as timed out was answered after all, and not by a pass.
  std::function<void(checker_key, const probe_report&)> on_late_answer;
  /// Its certificate ends then; after each handshake.
  std::function<void(checker_key, std::chrono::system_clock::time_point expiry)> on_certificate;
  /// An exception that must not be. Left out: it leaves through the loop's `run`.
  std::function<void(std::exception_ptr)> on_bug;
};

/// Probes every upstream again and again, one task each, and watches their held connections in
/// between: one that ends is dialled again at once, so that a crash is known within milliseconds;
/// TLS follows after a random part of the interval, unless the upstream is asked for.
///
/// Decides nothing about health: the owner does, and says when to probe next. Re-reads credentials
/// when their files change. Holds descriptors back, so that probing goes on when clients have taken
/// all others. One thread.
class checker {
 public:
  /// `random01` gives uniform numbers in [0, 1). `worst_lag_since` tells how late the loop was at
  /// worst since a time.
  checker(boost::asio::io_context& io, const config::config& settings, checker_events events,
          std::function<double()> random01,
          std::function<milliseconds(time_point since)> worst_lag_since);
  /// `stop`, and `stopped`, before this.
  ~checker();
  checker(const checker&) = delete;
  checker& operator=(const checker&) = delete;

  /// New settings, from the next probe on; changed credentials at once.
  void configure(const config::config& settings);
  /// Probes this upstream from now on, at once for the first time. Nothing new if it does already.
  void add(checker_key key, const net::endpoint& address);
  /// Its connection ends in order, its callbacks at once.
  void remove(checker_key key);
  enum class connection {
    any,
    fresh,  ///< does it accept new ones?
  };
  /// Probes it at once. A probe that is running will do, but not for `fresh`: then there is one
  /// more after it. Unknown keys are passed over.
  void probe_now(checker_key key, connection over = connection::any);

  /// Lets running probes finish (half a second at most) and ends every connection in order, while
  /// the loop turns on. No callback comes any more.
  void stop();
  bool stopped() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::health
