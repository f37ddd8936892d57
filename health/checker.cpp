#include "health/checker.hpp"

#include "health/probe.hpp"
#include "health/probe_schedule.hpp"
#include "net/credentials.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/task_group.hpp"
#include "net/timeout.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <utility>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;

constexpr auto poll_files_every = 200ms;
constexpr auto stop_limit = 500ms;
// A server gives a connection without a handshake up after half a minute, and logs it.
constexpr milliseconds longest_spread = 15s;
constexpr auto shortest_delay = 10ms;  // a probe can fail without any wait

// An upstream at its worst uses a fresh connection beside a held one and two witnesses; half of
// that is there anyway.
constexpr std::size_t reserved_per_upstream = 2;
constexpr std::size_t reserved_at_least = 2;

bool same(const config::probe_tls& a, const config::probe_tls& b) {
  return a.verify == b.verify && a.ca_file == b.ca_file && a.server_name == b.server_name &&
         a.client_cert_file == b.client_cert_file && a.client_key_file == b.client_key_file &&
         a.kubeconfig == b.kubeconfig;
}

// One upstream. Lives until its task has ended, which is some time after it was removed.
struct entry {
  checker_key key;
  std::unique_ptr<prober> probes;
  probe_schedule schedule;
  bool leaving = false;  // removed
};

}  // namespace

struct checker::impl {
  impl(asio::io_context& on, const config::config& settings, checker_events heard,
       std::function<double()> random, std::function<milliseconds(time_point)> lag)
      : io(on),
        events(std::move(heard)),
        random01(std::move(random)),
        worst_lag_since(std::move(lag)),
        probing(probe_settings_of(settings)),
        interval(config::probe_interval(settings)),
        tls(settings.health.tls),
        identity(tls),
        file_timer(io),
        stop_timer(io),
        tasks(io.get_executor(), [this](std::exception_ptr what) { bug(what); }) {}

  void bug(std::exception_ptr what);
  entry* find(checker_key key);
  probe_events events_of(entry& of);
  void probe_all_now();
  void leave(entry& which);
  void cancel();
  asio::awaitable<void> watch_over(std::list<entry>::iterator which);
  asio::awaitable<void> rest(entry& which);
  asio::awaitable<void> take_loss(entry& which);
  void deliver(entry& from, probe_report report);
  asio::awaitable<void> follow_files();

  asio::io_context& io;
  checker_events events;
  std::function<double()> random01;
  std::function<milliseconds(time_point)> worst_lag_since;
  probe_settings probing;
  milliseconds interval;
  config::probe_tls tls;
  net::credentials identity;
  net::descriptor_reserve reserve;
  std::list<entry> entries;
  bool following_files = false;
  bool stopping = false;
  asio::steady_timer file_timer;
  asio::steady_timer stop_timer;
  net::task_group tasks;
};

void checker::impl::bug(std::exception_ptr what) {
  if (!events.on_bug) std::rethrow_exception(what);
  events.on_bug(what);
}

entry* checker::impl::find(checker_key key) {
  for (auto& one : entries)
    if (one.key == key && !one.leaving) return &one;
  return nullptr;
}

// Nothing is heard of an upstream once it was removed.
probe_events checker::impl::events_of(entry& of) {
  return {
      .on_host_silent =
          [this, &of](const std::string& detail) {
            if (!of.leaving && events.on_host_silent) events.on_host_silent(of.key, detail);
          },
      .on_heard =
          [this, &of] {
            if (!of.leaving && events.on_heard) events.on_heard(of.key);
          },
      .on_late_answer =
          [this, &of](const probe_report& report) {
            if (!of.leaving && events.on_late_answer) events.on_late_answer(of.key, report);
          },
      .on_certificate =
          [this, &of](std::chrono::system_clock::time_point expiry) {
            if (!of.leaving && events.on_certificate) events.on_certificate(of.key, expiry);
          },
  };
}

void checker::impl::probe_all_now() {
  for (auto& one : entries) {
    one.schedule.asked_anew();
    one.probes->wake();
  }
}

void checker::impl::leave(entry& which) {
  which.leaving = true;
  which.probes->wake();
}

void checker::impl::cancel() {
  tasks.cancel();
  for (auto& one : entries) one.probes->cancel();
}

asio::awaitable<void> checker::impl::watch_over(std::list<entry>::iterator which) {
  while (!which->leaving) {
    const auto why = which->schedule.started();
    auto probing_it = which->probes->probe(probing, why);
    auto report = co_await std::move(probing_it);
    which->schedule.ended();
    deliver(*which, std::move(report));
    auto resting = rest(*which);
    co_await std::move(resting);
  }
  auto closing = which->probes->close();
  co_await std::move(closing);
  entries.erase(which);
}

asio::awaitable<void> checker::impl::rest(entry& which) {
  while (!which.leaving && !which.schedule.is_due(clock::now())) {
    auto resting = which.probes->rest(which.schedule.due());
    const auto end = co_await std::move(resting);
    switch (end) {
      case prober::rest_end::elapsed:
      case prober::rest_end::woken:
        break;
      case prober::rest_end::host_silent:
        which.schedule.asked();
        if (!which.leaving && events.on_host_silent)
          events.on_host_silent(which.key, which.probes->silence());
        break;
      case prober::rest_end::lost: {
        auto taking = take_loss(which);
        co_await std::move(taking);
        break;
      }
    }
  }
}

asio::awaitable<void> checker::impl::take_loss(entry& which) {
  if (which.schedule.lost() == probe_schedule::after_loss::probe) {
    which.schedule.asked();
    co_return;
  }
  auto dialling = which.probes->redial(probing);
  auto failed = co_await std::move(dialling);
  if (failed)
    deliver(which, std::move(*failed));
  else
    which.schedule.reconnected(clock::now(), std::min(interval, longest_spread), random01());
}

void checker::impl::deliver(entry& from, probe_report report) {
  if (from.leaving) return;
  report.loop_lag = worst_lag_since(report.started);
  const auto delay = events.on_report(from.key, report);
  // Somebody waits for a better one, whatever becomes of the connection meanwhile.
  if (delay == 0ms) from.schedule.pressing();
  from.schedule.reported(clock::now(), std::max<milliseconds>(delay, shortest_delay));
}

asio::awaitable<void> checker::impl::follow_files() {
  while (!stopping) {
    file_timer.expires_after(poll_files_every);
    auto [stopped] = co_await file_timer.async_wait(net::nothrow);
    if (stopped) co_return;
    reserve.refill();
    // A connection made under the old credentials is renewed by the next probe.
    if (identity.poll(clock::now()) == net::credentials::change::verifiable) probe_all_now();
  }
}

checker::checker(asio::io_context& io, const config::config& settings, checker_events events,
                 std::function<double()> random01,
                 std::function<milliseconds(time_point since)> worst_lag_since)
    : impl_(std::make_unique<impl>(io, settings, std::move(events), std::move(random01),
                                   std::move(worst_lag_since))) {}

checker::~checker() = default;

void checker::configure(const config::config& settings) {
  impl_->probing = probe_settings_of(settings);
  impl_->interval = config::probe_interval(settings);
  if (same(impl_->tls, settings.health.tls)) return;
  impl_->tls = settings.health.tls;
  impl_->identity = net::credentials(impl_->tls);
  impl_->probe_all_now();
}

void checker::add(checker_key key, const net::endpoint& address) {
  if (impl_->stopping || impl_->find(key)) return;
  if (!std::exchange(impl_->following_files, true)) impl_->tasks.spawn(impl_->follow_files());
  const auto which = impl_->entries.insert(impl_->entries.end(), entry{key, nullptr, {}, false});
  which->probes = std::make_unique<prober>(
      impl_->io.get_executor(), address, impl_->identity, impl_->reserve, impl_->events_of(*which),
      [it = impl_.get()](std::exception_ptr what) { it->bug(what); });
  impl_->reserve.resize(reserved_at_least + reserved_per_upstream * impl_->entries.size());
  impl_->tasks.spawn(impl_->watch_over(which));
}

void checker::remove(checker_key key) {
  if (auto* which = impl_->find(key)) impl_->leave(*which);
}

void checker::probe_now(checker_key key, connection over) {
  auto* which = impl_->find(key);
  if (!which) return;
  if (over == connection::fresh) {
    which->probes->renew();
    which->schedule.asked_anew();
  } else {
    which->schedule.asked();
  }
  which->probes->wake();
}

void checker::stop() {
  if (std::exchange(impl_->stopping, true)) return;
  for (auto& one : impl_->entries) impl_->leave(one);
  impl_->file_timer.cancel();
  impl_->stop_timer.expires_after(stop_limit);
  impl_->stop_timer.async_wait([it = impl_.get()](boost::system::error_code error) {
    if (!error) it->cancel();
  });
}

bool checker::stopped() const noexcept {
  const auto closed = [](const entry& one) { return one.probes->closed(); };
  return impl_->stopping && impl_->tasks.size() == 0 &&
         std::all_of(impl_->entries.begin(), impl_->entries.end(), closed);
}

}  // namespace kubelane::health
