#include "proxy/data_path.hpp"

#include "net/socket.hpp"
#include "proxy/data_path_impl.hpp"

#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr milliseconds check_period{100};
constexpr std::size_t rounds = 10;  // that many checks of all would fit into
constexpr milliseconds accept_again_after{200};
constexpr milliseconds quiet_time{10};
constexpr std::size_t many_connections = 1000;
constexpr int plenty_of_descriptors = 16;

template <auto Member>
void call(void* self) {
  (static_cast<data_path::impl*>(self)->*Member)();
}

void ignore(void*, std::uint32_t) {}

// The metric's label; a literal, since relays keep it.
const char* literal_of(std::string_view cause) {
  for (const char* known : {"hung", "dead", "etcd", "shutdown", "refused", "removed"})
    if (cause == known) return known;
  return "other";
}

template <typename Function>
void call_if_set(std::function<Function>& callback) {
  if (!callback) callback = [](auto&&...) {};
}

data_path_observer complete(data_path_observer given) {
  call_if_set(given.connection_ended);
  call_if_set(given.dial_ended);
  call_if_set(given.hedged);
  call_if_set(given.rejected);
  call_if_set(given.connection_reset);
  call_if_set(given.problem);
  return given;
}

}  // namespace

data_path::impl::impl(net::reactor& reactor, upstream_pool& upstreams,
                      const config::config& initial, data_path_observer to,
                      std::function<double()> random)
    : loop(reactor),
      pool(upstreams),
      settings(initial),
      observer(complete(std::move(to))),
      random01(std::move(random)),
      pipes(descriptors.pipes_to_keep()),
      ledger(pool, loop),
      view(pool),
      checking(loop, call<&impl::check_some>, this),
      looking(loop, call<&impl::look_again>, this),
      feeding(loop, call<&impl::feed_starving>, this),
      accepting(loop, call<&impl::try_to_accept>, this),
      relay_seam(make_relay_seam()),
      session_seam(make_session_seam()) {
  pipes.fill(2);
  checking.arm(loop.now() + check_period);
}

data_path::impl::~impl() {
  observer = complete({});
  while (!sessions.empty()) sessions.front().abort(end_reason::shutdown);
  while (!relays.empty()) relays.front().abort(end_reason::shutdown);
}

data_path::data_path(net::reactor& loop, upstream_pool& pool, const config::config& settings,
                     data_path_observer observer, std::function<double()> random01)
    : impl_(
          std::make_unique<impl>(loop, pool, settings, std::move(observer), std::move(random01))) {}

data_path::~data_path() = default;

void data_path::configure(const config::config& settings) {
  impl_->settings = settings;
  impl_->descriptors.read_limit();
}

void data_path::listen(int listening_fd, net::watched_fd::copies elsewhere) {
  const listener::seam seam{
      .owner = impl_.get(),
      .may_accept = [](void* self) { return static_cast<impl*>(self)->may_accept(); },
      .accepted = [](void* self, int client,
                     const listener& from) { static_cast<impl*>(self)->accepted(client, from); },
      .cannot_accept = [](void* self,
                          int error) { static_cast<impl*>(self)->pause_accepting(error); }};
  impl_->listeners.push_back(
      std::make_unique<listener>(impl_->loop, listening_fd, elsewhere, seam));
}

void data_path::stop_accepting() {
  for (const auto& each : impl_->listeners) each->accept_waiting();
  impl_->listeners.clear();
  impl_->accepting.cancel();
}

void data_path::apply(const reset_connections& wanted) {
  const auto* const cause = literal_of(wanted.cause);
  const auto why = wanted.cause == "dead" ? end_reason::reset_dead : end_reason::reset_hung;
  impl_->leave(wanted.id, wanted.spread,
               {.how = departure::manner::reset, .why = why, .cause = cause});
  std::vector<session*> dialling_it;
  for (auto& each : impl_->sessions) dialling_it.push_back(&each);
  for (auto* const each : dialling_it) each->give_up_on(wanted.id);
}

void data_path::apply(const drain_connections& wanted) {
  impl_->leave(wanted.id, wanted.spread,
               {.how = departure::manner::drain,
                .why = end_reason::drained,
                .cause = literal_of(wanted.cause),
                .busy_until = impl_->loop.now() + wanted.busy});
}

void data_path::apply(const call_off& wanted) {
  impl_->stay(wanted.id);
}

void data_path::close_all(milliseconds spread) {
  impl_->close_all(spread);
}

std::size_t data_path::connections() const {
  return impl_->relay_count + impl_->session_count;
}

std::size_t data_path::dialling() const {
  return impl_->session_count;
}

void data_path::impl::accepted(int client, const listener& from) {
  const auto limit = static_cast<std::size_t>(settings.limits.connections);
  const auto* const why =
      turned_away_because(client, from.is_loopback(), relay_count + session_count, limit);
  if (why != nullptr) return turn_away(client, why);
  if (descriptors.is_reserve(client)) descriptors_are_scarce = true;
  auto watched = loop.watch(client, net::edge_events, ignore, nullptr);
  if (!watched) return observer.rejected("descriptors");
  begin_session(std::move(watched), !from.is_loopback());
}

void data_path::impl::begin_session(net::watched_fd client, bool is_remote) {
  auto* const added =
      new session(session_seam, std::move(client), is_remote, pool.candidates(loop.now()));
  sessions.push_back(*added);
  ++session_count;
  added->begin();
}

void data_path::impl::turn_away(int client, const char* why) {
  net::reset(client);
  close(client);
  observer.rejected(why);
  problems.say(
      why,
      "client turned away limit=" + std::to_string(settings.limits.connections) + " reason=" + why,
      loop.now(), observer.problem);
}

// Looking costs four calls, so it is done only once the reserve was reached, until there is plenty.
bool data_path::impl::may_accept() {
  if (!descriptors_are_scarce) return true;
  const auto left = descriptors.left(listeners.front()->fd());
  descriptors_are_scarce = left < plenty_of_descriptors;
  if (left > 0) return true;
  pause_accepting(EMFILE);
  return false;
}

// Clients wait in the kernel's queue: turning them away would only make them come again.
void data_path::impl::pause_accepting(int error) {
  if (paused) return;
  paused = descriptors_are_scarce = true;
  for (const auto& each : listeners) each->pause();
  accepting.arm(loop.now() + accept_again_after);
  observer.rejected("descriptors");
  problems.say("descriptors",
               "new clients wait cause=\"" + std::string(std::strerror(error)) +
                   "\" connections=" + std::to_string(relay_count + session_count),
               loop.now(), observer.problem);
}

void data_path::impl::try_to_accept() {
  if (!paused || listeners.empty()) return;
  if (descriptors.left(listeners.front()->fd()) <= 0)
    return accepting.arm(loop.now() + accept_again_after);
  paused = false;
  accepting.cancel();
  for (const auto& each : listeners) each->resume();
}

time_point data_path::impl::within(milliseconds spread) {
  const std::chrono::duration<double, std::milli> random(random01() *
                                                         static_cast<double>(spread.count()));
  return loop.now() + std::chrono::duration_cast<net::clock::duration>(random);
}

void data_path::impl::leave(upstream_id id, milliseconds spread, departure how) {
  for (auto& each : relays)
    if (each.upstream() == id) each.leave_at(within(spread), how);
}

void data_path::impl::stay(upstream_id id) {
  for (auto& each : relays)
    if (each.upstream() == id) each.stay();
}

void data_path::impl::close_all(milliseconds spread) {
  while (!sessions.empty()) sessions.front().abort(end_reason::shutdown);
  for (auto& each : relays)
    each.leave_at(within(spread), {.how = departure::manner::drain,
                                   .why = end_reason::shutdown,
                                   .cause = nullptr,
                                   .busy_until = loop.now()});
}

void data_path::impl::check_some() {
  checking.arm(loop.next_after(checking.due(), check_period));
  give_memory_back();
  // Bounded, so that those which came together do not hold up the turn together.
  for (auto left = relay_count / rounds + 1; left > 0 && !to_check.empty(); --left) {
    relay& next = to_check.front();
    if (loop.now() < next.check_due) return;
    next.restless.unlink();
    check(next);
  }
}

void data_path::impl::check(relay& next) {
  if (store != nullptr && next.record() == nullptr && !next.is_young(loop.now()))
    keep(next, keeper::pace::limited);
  const bool unkept = store != nullptr && next.record() == nullptr;
  const auto attention = next.check(loop.now());  // may be its end
  if (attention == relay::attention::needed || (unkept && !next.is_over())) restless(next);
}

// The allocator keeps what many connections have needed, for ever, unless it is told.
void data_path::impl::give_memory_back() {
  const auto count = relay_count + session_count;
  most_connections = std::max(most_connections, count);
  if (most_connections < many_connections || count > most_connections / 4) return;
  most_connections = count;
  malloc_trim(0);
}

void data_path::impl::look_again() {
  while (!doubtful.empty()) {
    relay& next = doubtful.front();
    if (loop.now() - next.unproven_since() < quiet_time)
      return looking.arm(loop.now() + look_period);
    doubtful.pop_front();
    next.resume();
  }
}

void data_path::impl::feed_starving() {
  starving_list waiting;
  waiting.swap(starving);
  while (!waiting.empty()) {
    relay& next = waiting.front();
    waiting.pop_front();
    next.resume();
  }
}

}  // namespace kubelane::proxy
