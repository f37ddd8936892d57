#include "proxy/commands/probe_all.hpp"

#include "health/probe.hpp"
#include "net/credentials.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/task_group.hpp"
#include "proxy/commands/text_table.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <algorithm>
#include <list>
#include <ostream>

namespace kubelane::commands {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

struct target {
  probed seen;
  std::optional<net::endpoint> address;
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

bool is_good(const health::probe_report& report) {
  return report.result == health::outcome::passed || report.result == health::outcome::unauthorized;
}

target make_target(std::string name, std::optional<net::endpoint> address) {
  target one;
  one.seen.name = std::move(name);
  one.seen.verdict = "unresolved";
  one.address = std::move(address);
  return one;
}

std::list<target> resolve(const config::config& settings) {
  std::list<target> targets;
  asio::io_context io;
  tcp::resolver resolver(io);
  for (const auto& upstream : settings.upstreams) {
    if (const auto address = net::parse_endpoint(net::to_string(upstream.address), 0)) {
      targets.push_back(make_target(upstream.name, *address));
      continue;
    }
    boost::system::error_code error;
    const auto port = upstream.address.port;
    const auto found = resolver.resolve(upstream.address.host, std::to_string(port), error);
    if (error || found.empty()) targets.push_back(make_target(upstream.name, std::nullopt));
    for (const auto& one : found)
      targets.push_back(make_target(upstream.name + '/' + one.endpoint().address().to_string(),
                                    net::endpoint(one.endpoint().address(), port)));
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
  events.on_certificate = [&one](std::chrono::system_clock::time_point expiry) {
    one.seen.expiry = expiry;
  };
  events.on_answer = [&one](const net::http_response& answer) {
    one.seen.date = net::find_header(answer.headers, "date").value_or("");
    one.seen.heard = std::chrono::system_clock::now();
  };
  health::prober prober(executor, *one.address, identity, reserve, std::move(events),
                        [](std::exception_ptr) {});
  auto probing = prober.probe(health::probe_settings_of(settings));
  const auto report = co_await std::move(probing);
  one.seen.verdict = verdict(report);
  one.seen.good = is_good(report);
  auto closing = prober.close();
  co_await std::move(closing);
}

}  // namespace

bool probe_results::all_good() const {
  return std::all_of(servers.begin(), servers.end(), [](const auto& one) { return one.good; });
}

probe_results probe_all(const config::config& settings) {
  const net::credentials identity(settings.health.tls);
  net::descriptor_reserve reserve;
  auto targets = resolve(settings);
  asio::io_context io{1};
  std::exception_ptr bug;
  net::task_group tasks(io.get_executor(), [&](std::exception_ptr failure) { bug = failure; });
  for (auto& one : targets)
    if (one.address) tasks.spawn(probe_one(one, settings, identity, reserve));
  io.run();
  if (bug) std::rethrow_exception(bug);
  probe_results result;
  if (settings.health.mode == config::probe_mode::readyz) result.note = identity.note();
  for (auto& one : targets) result.servers.push_back(std::move(one.seen));
  return result;
}

int print(const probe_results& what, std::ostream& out) {
  if (!what.note.empty()) out << "note: " << what.note << '\n';
  for (const auto& one : what.servers) out << one.name << ": " << printable(one.verdict) << '\n';
  return what.all_good() ? 0 : probe_failed;
}

}  // namespace kubelane::commands
