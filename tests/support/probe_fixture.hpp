#pragma once

#include "health/probe.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/run.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace kubelane::test {

/// A prober of one fake API server; made when first used, so that a test can set it up.
class probe_fixture : public testing::Test {
 protected:
  probe_fixture() {
    tls.ca_file = folder.write("ca.crt", test_authority().certificate_pem());
    settings.timeout = 2s;
  }

  ~probe_fixture() override { end(); }

  health::prober& prober() {
    if (!identity) identity.emplace(tls);
    if (!probes) {
      health::probe_events events;
      events.on_host_silent = [this](const std::string& why) { silent.push_back(why); };
      events.on_heard = [this] { ++heard; };
      events.on_late_answer = [this](const health::probe_report& report) {
        late.push_back(report);
      };
      events.on_certificate = [this](auto expiry) { expiries.push_back(expiry); };
      probes = std::make_unique<health::prober>(
          io.get_executor(), address.value_or(server.address()), *identity, reserve,
          std::move(events), [](std::exception_ptr what) { std::rethrow_exception(what); });
    }
    return *probes;
  }

  health::probe_report probe(
      health::probe_schedule::reason why = health::probe_schedule::reason::interval) {
    health::probe_report result;
    run(io, [&]() -> boost::asio::awaitable<void> {
      auto probing = prober().probe(settings, why);
      result = co_await std::move(probing);
    }());
    return result;
  }

  // Ends in order.
  void end() {
    if (!probes) return;
    run(io, [&]() -> boost::asio::awaitable<void> {
      auto closing = probes->close();
      co_await std::move(closing);
    }());
    probes.reset();
  }

  void answer(unsigned status, const std::string& body) {
    server.answer("/readyz", {.status = status, .body = body});
  }

  bool all_gone() {
    return poll_until([&] { return server.counters().open == 0; });
  }

  boost::asio::io_context io;
  temporary_folder folder;
  fake_apiserver server;
  config::probe_tls tls;
  health::probe_settings settings;
  std::optional<net::endpoint> address;  // instead of the server's
  std::optional<net::credentials> identity;
  net::descriptor_reserve reserve;
  std::unique_ptr<health::prober> probes;
  std::vector<std::string> silent;
  std::vector<health::probe_report> late;
  std::vector<std::chrono::system_clock::time_point> expiries;
  int heard = 0;
};

}  // namespace kubelane::test
