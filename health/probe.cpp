#include "health/probe.hpp"

#include "health/probe_verdict.hpp"
#include "net/timeout.hpp"

#include <algorithm>
#include <utility>

namespace kubelane::health {
namespace {

using net::error_code;
using namespace std::chrono_literals;

constexpr int answers_per_connection = 30;
constexpr auto witness_limit = 5s;
// An answer that takes two seconds, asked for every three quarters of one, is awaited by two; their
// ends and beginnings overlap.
constexpr std::size_t most_witnesses = 3;
constexpr auto farewell_limit = 500ms;

}  // namespace

probe_settings probe_settings_of(const config::config& from) {
  return {from.health.mode, from.health.path, from.health.timeout};
}

prober::prober(asio::any_io_executor executor, net::endpoint address,
               const net::credentials& identity, net::descriptor_reserve& reserve,
               probe_events events, std::function<void(std::exception_ptr)> on_bug)
    : executor_(executor),
      address_(std::move(address)),
      identity_(identity),
      reserve_(reserve),
      events_(std::move(events)),
      rest_timer_(executor),
      tasks_(executor, std::move(on_bug)) {}

prober::~prober() = default;

prober::connection_ptr prober::new_connection() {
  return std::make_unique<probe_connection>(executor_, address_, reserve_, events_);
}

time_point prober::phase_deadline(const probe_settings& settings) const {
  return clock::now() + phase_limit(settings.timeout, round_trip_);
}

bool prober::must_renew(probe_schedule::reason why) const {
  const bool usual = why == probe_schedule::reason::interval;
  if (usual && held_->answers() >= answers_per_connection) return true;
  return held_->secured() && !held_->secured_under(identity_.context());
}

asio::awaitable<probe_report> prober::probe(probe_settings settings, probe_schedule::reason why) {
  if (settings.mode == config::probe_mode::tcp) {
    auto connecting = connect_only(settings);
    co_return co_await std::move(connecting);
  }
  const auto started = clock::now();
  const bool renew = std::exchange(renew_, false);
  if (held_ && !renew && !must_renew(why)) {
    const bool used_before = held_->answers() > 0;
    auto asking = ask(std::move(held_), settings, started);
    auto report = co_await std::move(asking);
    // The server may have closed it, idle, just as we asked: that says nothing yet.
    if (report.result != outcome::lost || !used_before) co_return report;
  }
  const auto* before = held_.get();
  auto asking = ask(new_connection(), settings, started);
  auto report = co_await std::move(asking);
  if (!before || held_.get() != before) co_return report;
  // The fresh connection failed; the old one is still there.
  auto old = std::move(held_);
  if (report.result == outcome::timed_out) keep_as_witness(std::move(old), settings.path, report);
  if (report.result != outcome::local_trouble) co_return report;
  auto asking_on = ask(std::move(old), settings, started);
  co_return co_await std::move(asking_on);
}

asio::awaitable<probe_report> prober::connect_only(probe_settings settings) {
  held_.reset();
  probe_report report;
  report.started = clock::now();
  auto connection = new_connection();
  auto connecting = connection->connect(phase_deadline(settings));
  const auto error = co_await std::move(connecting);
  report.finished = clock::now();
  if (!error) round_trip_ = connection->round_trip();
  auto what = error ? judge_failure(phase::connect, error, {}) : verdict();
  report.result = what.result;
  report.detail = std::move(what.detail);
  co_return report;
}

asio::awaitable<probe_report> prober::ask(connection_ptr connection, probe_settings settings,
                                          time_point started) {
  probe_report report;
  report.started = started;
  report.verified = identity_.verifies();
  const auto heard_before = connection->heard();
  auto phases = run_phases(*connection, settings, report);
  const auto error = co_await std::move(phases);
  report.finished = clock::now();
  report.heard = error && connection->heard() > heard_before;
  if (error == asio::error::timed_out && report.reached != phase::connect) {
    report.result = outcome::timed_out;
    report.detail = judge_failure(report.reached, error, {}).detail;
    keep_as_witness(std::move(connection), settings.path, report);
    co_return report;
  }
  conclude(report, std::move(connection), error);
  co_return report;
}

asio::awaitable<error_code> prober::run_phases(probe_connection& over, probe_settings settings,
                                               probe_report& report) {
  if (!over.stream().is_open()) {
    report.reached = phase::connect;
    auto connecting = over.connect(phase_deadline(settings));
    const auto error = co_await std::move(connecting);
    if (error) co_return error;
    round_trip_ = over.round_trip();
  }
  if (!over.secured()) {
    report.reached = phase::tls;
    auto securing = over.secure(identity_.context(), session_, phase_deadline(settings));
    const auto error = co_await std::move(securing);
    if (error) co_return error;
  }
  report.reached = phase::answer;
  auto asking = over.ask(settings.path, identity_, phase_deadline(settings));
  co_return co_await std::move(asking);
}

// What the probe's end means; a connection that can be used again is held.
void prober::conclude(probe_report& report, connection_ptr connection, error_code error) {
  verdict what;
  if (error) {
    what = judge_failure(report.reached, error, connection->stream().failure());
  } else {
    const auto answer = connection->take_answer();
    if (events_.on_answer) events_.on_answer(answer);
    what = judge_answer(answer.status, answer.reason, answer.body);
    if (what.result == outcome::passed) what.detail = identity_.note();
    round_trip_ = connection->round_trip();
    if (answer.keep_alive) held_ = std::move(connection);
  }
  report.result = what.result;
  report.detail = std::move(what.detail);
  report.etcd_failed = what.etcd_failed;
}

void prober::keep_as_witness(connection_ptr connection, std::string path, probe_report given_up) {
  if (tasks_.size() >= most_witnesses) return;
  tasks_.spawn(witness(std::move(connection), std::move(path), std::move(given_up)));
}

asio::awaitable<void> prober::witness(connection_ptr connection, std::string path,
                                      probe_report given_up) {
  const auto deadline = clock::now() + witness_limit;
  connection->testify();
  error_code error;
  if (connection->secured()) {
    auto asking = connection->ask(path, identity_, deadline);
    error = co_await std::move(asking);
    if (!error) tell_late_answer(*connection, std::move(given_up));
  } else {
    auto securing = connection->secure(identity_.context(), session_, deadline);
    error = co_await std::move(securing);
  }
  if (error == net::stream_error::peer_silent && events_.on_host_silent)
    events_.on_host_silent(connection->stream().failure());
}

// A late pass was heard already, and that is all it says: the server is slow.
void prober::tell_late_answer(probe_connection& from, probe_report given_up) {
  const auto answer = from.take_answer();
  auto what = judge_answer(answer.status, answer.reason, answer.body);
  const bool good = what.result == outcome::passed || what.result == outcome::unauthorized;
  if (good || !events_.on_late_answer) return;
  given_up.result = what.result;
  given_up.detail = std::move(what.detail);
  given_up.etcd_failed = what.etcd_failed;
  events_.on_late_answer(given_up);
}

asio::awaitable<prober::rest_end> prober::rest(time_point until) {
  if (std::exchange(woken_, false)) co_return rest_end::woken;
  if (!held_) {
    rest_timer_.expires_at(until);
    auto [error] = co_await rest_timer_.async_wait(net::nothrow);
    woken_ = false;
    co_return error ? rest_end::woken : rest_end::elapsed;
  }
  auto watching = held_->stream().watch();
  auto [error] = co_await net::with_timeout(until - clock::now(), std::move(watching));
  if (std::exchange(woken_, false)) co_return rest_end::woken;
  if (error == asio::error::timed_out) co_return rest_end::elapsed;
  // Ended, or data that nobody asked for: of no use any more.
  const auto ended = std::move(held_);
  if (error != net::stream_error::peer_silent) co_return rest_end::lost;
  silence_ = ended->stream().failure();
  co_return rest_end::host_silent;
}

void prober::wake() {
  woken_ = true;
  rest_timer_.cancel();
  if (held_) held_->stream().cancel();
}

asio::awaitable<std::optional<probe_report>> prober::redial(probe_settings settings) {
  probe_report report;
  report.started = clock::now();
  report.verified = identity_.verifies();
  auto fresh = new_connection();
  auto connecting = fresh->connect(phase_deadline(settings));
  const auto error = co_await std::move(connecting);
  if (!error) {
    held_ = std::move(fresh);
    co_return std::nullopt;
  }
  report.finished = clock::now();
  conclude(report, std::move(fresh), error);
  co_return report;
}

asio::awaitable<void> prober::close() {
  tasks_.cancel();
  if (held_ && !held_->secured()) {
    // Left as it is, the server would log a broken handshake.
    auto securing = held_->secure(identity_.context(), session_, clock::now() + farewell_limit);
    co_await std::move(securing);
  }
  held_.reset();
  auto empty = tasks_.wait_empty();
  co_await std::move(empty);
}

void prober::cancel() {
  tasks_.cancel();
  held_.reset();
}

}  // namespace kubelane::health
