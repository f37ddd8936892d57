// The probes of many workers from one process: kubelane's own checker, on real sockets, and for
// each worker the pool that decides when it asks next.
//
//   workers PORT CA_FILE WORKERS NODES TIMES SECONDS
//
// NODES is cluster.nodes. Every pause between two probes is TIMES shorter than it would be; limits
// are what they are. Prints a line for each change of what a worker thinks of the server,
// `STATE CLOCK`, and at the end `probes COUNT`; CLOCK is CLOCK_MONOTONIC in seconds.

#include "health/checker.hpp"
#include "proxy/upstream_pool.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

namespace kubelane {
namespace {

using namespace std::chrono_literals;
using health::checker_key;
using health::clock;
using health::milliseconds;
using health::time_point;

constexpr milliseconds tick_period = 50ms;

struct wanted_fleet {
  net::endpoint server;
  std::string ca_file;
  std::size_t workers = 0;
  int nodes = 0;
  int times = 1;
  std::chrono::seconds duration{0};
};

class fleet {
 public:
  fleet(boost::asio::io_context& io, const wanted_fleet& wanted);
  void run();

 private:
  static config::config settings_of(const wanted_fleet& from);
  health::checker_events events();
  void add_next();
  void tick();
  time_point virtual_time(time_point real) const;
  milliseconds report(checker_key worker, health::probe_report seen);
  void apply_effects(checker_key worker);

  boost::asio::io_context& io_;
  wanted_fleet wanted_;
  config::config settings_;
  time_point origin_ = clock::now();
  std::mt19937_64 random_{1};
  std::vector<std::unique_ptr<proxy::upstream_pool>> pools_;
  health::checker checker_;
  boost::asio::steady_timer adding_;
  boost::asio::steady_timer ticking_;
  std::uint64_t probes_ = 0;
};

config::config fleet::settings_of(const wanted_fleet& from) {
  config::config settings;
  settings.cluster.nodes = from.nodes;
  settings.health.tls.ca_file = from.ca_file;
  return settings;
}

fleet::fleet(boost::asio::io_context& io, const wanted_fleet& wanted)
    : io_(io),
      wanted_(wanted),
      settings_(settings_of(wanted)),
      checker_(
          io, settings_, events(),
          [this] { return std::uniform_real_distribution<double>(0, 1)(random_); },
          [](time_point) { return 0ms; }),
      adding_(io),
      ticking_(io) {
  pools_.reserve(wanted.workers);
}

health::checker_events fleet::events() {
  health::checker_events result;
  result.on_report = [this](checker_key worker, const health::probe_report& seen) {
    ++probes_;
    return report(worker, seen);
  };
  result.on_host_silent = [this](checker_key worker, const std::string& detail) {
    pools_[worker]->report_host_silent(proxy::upstream_id{1}, detail, virtual_time(clock::now()));
    apply_effects(worker);
  };
  result.on_heard = [](checker_key) {};
  result.on_late_answer = [](checker_key, const health::probe_report&) {};
  result.on_certificate = [](checker_key, std::chrono::system_clock::time_point) {};
  return result;
}

// For the pools, time runs as fast as the pauses are short.
time_point fleet::virtual_time(time_point real) const {
  return origin_ + (real - origin_) * wanted_.times;
}

milliseconds fleet::report(checker_key worker, health::probe_report seen) {
  seen.started = virtual_time(seen.started);
  seen.finished = virtual_time(seen.finished);
  const auto pause = pools_[worker]->report_probe(proxy::upstream_id{1}, seen, seen.finished);
  apply_effects(worker);
  return pause / wanted_.times;
}

void fleet::apply_effects(checker_key worker) {
  for (const auto& each : pools_[worker]->take_effects()) {
    if (const auto* const ask = std::get_if<proxy::probe_now>(&each))
      checker_.probe_now(worker, ask->fresh ? health::checker::connection::fresh
                                            : health::checker::connection::any);
    if (const auto* const changed = std::get_if<proxy::upstream_changed>(&each)) {
      const std::chrono::duration<double> at = clock::now().time_since_epoch();
      std::printf("%s %.6f\n", health::to_string(changed->to), at.count());
    }
  }
}

// One after the other within an interval: a fleet is not started in one instant.
void fleet::add_next() {
  const auto worker = static_cast<checker_key>(pools_.size());
  if (worker >= wanted_.workers) return;
  pools_.push_back(std::make_unique<proxy::upstream_pool>(
      settings_, [this] { return std::uniform_real_distribution<double>(0, 1)(random_); }));
  pools_.back()->reconcile({{"cp1", wanted_.server, "", health::membership::configured}},
                           virtual_time(clock::now()));
  checker_.add(worker, wanted_.server);
  const std::chrono::nanoseconds interval = config::probe_interval(settings_);
  adding_.expires_after(interval / wanted_.times / wanted_.workers);
  adding_.async_wait([this](boost::system::error_code error) {
    if (!error) add_next();
  });
}

void fleet::tick() {
  for (checker_key worker = 0; worker < pools_.size(); ++worker) {
    pools_[worker]->tick(virtual_time(clock::now()));
    apply_effects(worker);
  }
  std::fflush(stdout);
  ticking_.expires_after(tick_period);
  ticking_.async_wait([this](boost::system::error_code error) {
    if (!error) tick();
  });
}

void fleet::run() {
  add_next();
  tick();
  io_.run_for(wanted_.duration);
  std::printf("probes %lu\n", probes_);
  std::fflush(stdout);
  std::_Exit(0);  // the connections end with the process, as those of a fleet do not
}

}  // namespace
}  // namespace kubelane

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: workers PORT CA_FILE WORKERS NODES TIMES SECONDS\n", stderr);
    return 64;
  }
  boost::asio::io_context io;
  kubelane::fleet(
      io, {.server = *kubelane::net::parse_endpoint(std::string("127.0.0.1:") + argv[1], 6443),
           .ca_file = argv[2],
           .workers = std::strtoul(argv[3], nullptr, 10),
           .nodes = std::atoi(argv[4]),
           .times = std::atoi(argv[5]),
           .duration = std::chrono::seconds(std::atoi(argv[6]))})
      .run();
}
