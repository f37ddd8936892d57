#pragma once

#include "health/checker.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace kubelane::test {

/// A checker and one fake API server; made when first used, so that a test can set it up.
class checker_fixture : public testing::Test {
 protected:
  static constexpr health::checker_key cp1 = 1;

  checker_fixture() {
    settings.health.tls.ca_file = folder.write("ca.crt", test_authority().certificate_pem());
    settings.health.timeout = 2s;
    settings.health.interval = 10s;
  }

  ~checker_fixture() override { stop(); }

  health::checker& checker() {
    if (running) return *running;
    health::checker_events events;
    events.on_report = [this](health::checker_key, const health::probe_report& report) {
      reports.push_back(report);
      if (on_report) on_report();
      return delay;
    };
    events.on_host_silent = [this](health::checker_key, const std::string&) { ++silent; };
    events.on_heard = [this](health::checker_key) { ++heard; };
    events.on_certificate = [this](health::checker_key, auto) { ++certificates; };
    running = std::make_unique<health::checker>(
        io, settings, std::move(events), [this] { return random; },
        [this](health::clock::time_point) { return lag; });
    return *running;
  }

  bool reported(std::size_t count, std::chrono::milliseconds limit = 3s) {
    return poll_until(
        io, [&] { return reports.size() >= count; }, limit);
  }

  void pass(std::chrono::milliseconds time) {
    io.restart();
    io.run_for(time);
  }

  bool stop() {
    if (!running) return true;
    running->stop();
    const bool stopped = poll_until(
        io, [&] { return running->stopped(); }, 2s);
    running.reset();
    return stopped;
  }

  // An upstream with a held connection whose next probe is an hour away.
  void settle() {
    delay = 1h;
    checker().add(cp1, server.address());
    ASSERT_TRUE(reported(1));
    ASSERT_EQ(reports[0].result, health::outcome::passed) << reports[0].detail;
  }

  boost::asio::io_context io;
  temporary_folder folder;
  fake_apiserver server;
  config::config settings;
  std::unique_ptr<health::checker> running;
  std::vector<health::probe_report> reports;
  std::function<void()> on_report;
  std::chrono::milliseconds delay = 1h;
  std::chrono::milliseconds lag{0};
  double random = 0.5;
  int silent = 0;
  int heard = 0;
  int certificates = 0;
};

}  // namespace kubelane::test
