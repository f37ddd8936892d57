#include "proxy/commands/probe_all.hpp"

#include "health/probe.hpp"
#include "net/credentials.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/task_group.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <list>
#include <ostream>

namespace kubelane::commands {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr int probe_failed = 3;

struct target {
  std::string name;
  std::optional<net::endpoint> address;
  std::optional<health::probe_report> report;
};

/// As a running kubelane would name it after this one answer.
std::string verdict(const health::probe_report& report) {
  using health::outcome;
  const auto with = [&](const std::string& words) {
    return report.detail.empty() ? words : words + ": " + report.detail;
  };
  switch (report.result) {
    case outcome::passed:
    case outcome::unauthorized:
      return with("ready");
    case outcome::shutting_down:
      return with("shutting_down");
    case outcome::not_ready:
    case outcome::bad_validity:
      return with("not_ready");
    case outcome::refused:
      return with("refused");
    case outcome::host_silent:
      return with("dead");
    case outcome::wrong_certificate:
    case outcome::not_tls:
      return with("impostor");
    case outcome::timed_out:
      return with("no answer in time");
    case outcome::lost:
      return with("connection lost");
    case outcome::local_trouble:
      return with("unknown");
  }
  return with("unknown");
}

bool good(const target& one) {
  return one.report && (one.report->result == health::outcome::passed ||
                        one.report->result == health::outcome::unauthorized);
}

std::list<target> resolve(const config::config& settings) {
  std::list<target> targets;
  asio::io_context io;
  tcp::resolver resolver(io);
  for (const auto& upstream : settings.upstreams) {
    if (const auto address = net::parse_endpoint(net::to_string(upstream.address), 0)) {
      targets.push_back({upstream.name, *address, std::nullopt});
      continue;
    }
    boost::system::error_code error;
    const auto port = upstream.address.port;
    const auto found = resolver.resolve(upstream.address.host, std::to_string(port), error);
    if (error || found.empty()) targets.push_back({upstream.name, std::nullopt, std::nullopt});
    for (const auto& one : found)
      targets.push_back({upstream.name + '/' + one.endpoint().address().to_string(),
                         net::endpoint(one.endpoint().address(), port), std::nullopt});
  }
  return targets;
}

asio::awaitable<void> probe_one(target& one, const config::config& settings,
                                const net::credentials& identity,
                                net::descriptor_reserve& reserve) {
  const auto executor = co_await asio::this_coro::executor;
  health::probe_events events;
  events.on_host_silent = [](const std::string&) {};
  events.on_heard = [] {};
  events.on_certificate = [](std::chrono::system_clock::time_point) {};
  health::prober prober(executor, *one.address, identity, reserve, std::move(events),
                        [](std::exception_ptr) {});
  auto probing = prober.probe(health::probe_settings_of(settings));
  one.report = co_await std::move(probing);
  auto closing = prober.close();
  co_await std::move(closing);
}

}  // namespace

int probe_all(const config::config& settings, std::ostream& out) {
  const net::credentials identity(settings.health.tls);
  if (settings.health.mode == config::probe_mode::readyz && !identity.note().empty())
    out << "note: " << identity.note() << '\n';
  net::descriptor_reserve reserve;
  auto targets = resolve(settings);
  asio::io_context io{1};
  std::exception_ptr bug;
  net::task_group tasks(io.get_executor(), [&](std::exception_ptr failure) { bug = failure; });
  for (auto& one : targets)
    if (one.address) tasks.spawn(probe_one(one, settings, identity, reserve));
  io.run();
  if (bug) std::rethrow_exception(bug);
  int status = 0;
  for (const auto& one : targets) {
    out << one.name << ": " << (one.report ? verdict(*one.report) : "unresolved") << '\n';
    if (!good(one)) status = probe_failed;
  }
  return status;
}

}  // namespace kubelane::commands
