#pragma once

#include "config/config.hpp"
#include "health/evidence.hpp"
#include "health/probe_connection.hpp"
#include "health/probe_schedule.hpp"
#include "net/credentials.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/endpoint.hpp"
#include "net/task_group.hpp"
#include "net/tls.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <optional>

namespace kubelane::health {

struct probe_settings {
  config::probe_mode mode = config::probe_mode::readyz;
  std::string path = "/readyz";
  milliseconds timeout{500};
};

probe_settings probe_settings_of(const config::config& from);

/// Probes one upstream, over one TLS connection that is held between the probes.
///
/// The connection is renewed every thirtieth time and after a time-out. One whose probe was given
/// up is kept as a witness for five seconds more: what it hears or its kernel misses is an event.
/// It ends in order: the whole answer read, close_notify sent.
class prober {
 public:
  /// `identity` and `reserve` outlive this. `on_bug` takes exceptions that must not be.
  prober(asio::any_io_executor executor, net::endpoint address, const net::credentials& identity,
         net::descriptor_reserve& reserve, probe_events events,
         std::function<void(std::exception_ptr)> on_bug);
  ~prober();
  prober(const prober&) = delete;
  prober& operator=(const prober&) = delete;

  /// Asks once. Each phase is limited by `phase_limit`. One that somebody asked for goes over the
  /// held connection even if the thirty are over: a host's silence shows only there.
  asio::awaitable<probe_report> probe(
      probe_settings settings, probe_schedule::reason why = probe_schedule::reason::interval);

  enum class rest_end {
    elapsed,
    woken,
    lost,         ///< the held connection ended
    host_silent,  ///< the held connection's kernel gave the host up; `silence` says why
  };
  /// The next probe asks on a new connection: does it accept any?
  void renew() { renew_ = true; }

  /// Watches the held connection until `until`.
  asio::awaitable<rest_end> rest(time_point until);
  /// Ends `rest` at once.
  void wake();
  const std::string& silence() const noexcept { return silence_; }

  /// After `lost`: connects again, TCP alone; the next probe goes on from there. A report if that
  /// failed.
  asio::awaitable<std::optional<probe_report>> redial(probe_settings settings);

  /// Ends every connection in order. Nothing else may be running.
  asio::awaitable<void> close();
  /// Ends what runs; `close` need not be waited for then, but the loop has to turn.
  void cancel();
  bool closed() const noexcept { return tasks_.size() == 0; }

 private:
  using connection_ptr = std::unique_ptr<probe_connection>;

  connection_ptr new_connection();
  asio::awaitable<probe_report> connect_only(probe_settings settings);
  asio::awaitable<probe_report> ask(connection_ptr connection, probe_settings settings,
                                    time_point started);
  asio::awaitable<net::error_code> run_phases(probe_connection& over, probe_settings settings,
                                              probe_report& report);
  void conclude(probe_report& report, connection_ptr connection, net::error_code error);
  bool must_renew(probe_schedule::reason why) const;
  void keep_as_witness(connection_ptr connection, std::string path, probe_report given_up);
  asio::awaitable<void> witness(connection_ptr connection, std::string path, probe_report given_up);
  void tell_late_answer(probe_connection& from, probe_report given_up);
  time_point phase_deadline(const probe_settings& settings) const;

  asio::any_io_executor executor_;
  net::endpoint address_;
  const net::credentials& identity_;
  net::descriptor_reserve& reserve_;
  probe_events events_;
  net::tls_session session_;
  connection_ptr held_;  // idle between probes
  std::chrono::microseconds round_trip_{0};
  asio::steady_timer rest_timer_;
  bool woken_ = false;
  bool renew_ = false;
  std::string silence_;
  net::task_group tasks_;  // the witnesses
};

}  // namespace kubelane::health
