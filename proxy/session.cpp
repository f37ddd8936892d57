#include "proxy/session.hpp"

#include "net/socket.hpp"
#include "net/socket_facts.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace kubelane::proxy {
namespace {

using health::dial_result;

dial_result meaning_of(int connect_error) {
  switch (connect_error) {
    case ECONNREFUSED:
      return dial_result::refused;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
      return dial_result::host_silent;
    case ECONNRESET:
    case EPIPE:
      return dial_result::lost;
    default:
      return dial_result::local_trouble;  // no route, no permission, no descriptor, no port
  }
}

const char* kind_of(dial_action::reason why) {
  return why == dial_action::reason::hedge ? "dial" : "first_flight";
}

}  // namespace

session::session(const session_context& context, net::watched_fd client, bool client_is_remote,
                 std::vector<candidate> candidates)
    : context_(context),
      client_(std::move(client)),
      candidates_(std::move(candidates)),
      plan_(context.limits, context.budget, candidates_.size(), context.loop.now()),
      timer_(context.loop, on_timer, this),
      accepted_(context.loop.now()),
      client_is_remote_(client_is_remote) {
  seen_.fd = client_.fd();
  client_.retarget(on_client, this);
}

session::~session() {
  assert(over_);
}

void session::begin() {
  plan_.begin(context_.loop.now());
  carry_out();
}

void session::on_timer(void* self) {
  auto& it = *static_cast<session*>(self);
  it.plan_.expired(it.context_.loop.now(), it.context_.all_slow(it.context_.owner));
  it.carry_out();
}

void session::on_client(void* self, std::uint32_t events) {
  auto& it = *static_cast<session*>(self);
  note_events(it.seen_, events);
  it.look_at_client();
  it.carry_out();
}

void session::on_server(void* self, std::uint32_t events) {
  auto& at = *static_cast<attempt*>(self);
  auto& it = *at.owner;
  note_events(at.seen, events);
  if (!at.is_connected) {
    if (at.seen.error != 0)
      it.connect_failed(at, at.seen.error);
    else if (at.seen.writable)
      it.note_connected(at);
  }
  if (at.is_connected && !at.is_over) it.send_flight(at);
  if (at.is_connected && !at.is_over && at.seen.readable) it.look_for_answer(at);
  it.carry_out();
}

// Does what the plan wants; what happens meanwhile may make it want more.
void session::carry_out() {
  if (over_) return;
  while (plan_.has_actions()) {
    for (const auto& action : plan_.take_actions()) {
      do_action(action);
      if (over_) return;
    }
  }
  attempts_.erase(std::remove_if(attempts_.begin(), attempts_.end(),
                                 [](const attempt_ptr& each) { return each->is_over; }),
                  attempts_.end());
  if (const auto deadline = plan_.deadline())
    timer_.arm(*deadline);
  else
    timer_.cancel();
}

void session::do_action(const dial_action& next) {
  switch (next.what) {
    case dial_action::kind::dial:
      return dial(next);
    case dial_action::kind::drop:
      if (auto* const gone = find(next.candidate)) {
        if (next.result) report(*gone, *next.result);
        drop(*gone);
      }
      return;
    case dial_action::kind::relay:
      if (auto* const chosen = find(next.candidate)) hand_over(*chosen);
      return;
    case dial_action::kind::give_up:
      return abort(end_reason::no_upstream);
    case dial_action::kind::check_acknowledged:
      if (auto* const asked = find(next.candidate)) ask_acknowledged(*asked);
      return;
  }
}

void session::dial(const dial_action& next) {
  const auto& target = candidates_[next.candidate];
  if (next.why != dial_action::reason::first && !is_still_wanted(target.id))
    return plan_.failed(next.candidate, context_.loop.now());
  if (!context_.may_dial(context_.owner)) return abort(end_reason::no_upstream);
  if (next.why == dial_action::reason::hedge || next.why == dial_action::reason::replay)
    context_.hedged(context_.owner, kind_of(next.why));
  attempts_.push_back(std::make_unique<attempt>());
  auto& added = *attempts_.back();
  added.owner = this;
  added.index = next.candidate;
  added.share = std::make_unique<traffic>(context_.ledger, target.id);
  added.started = context_.loop.now();
  connect_to(added, target.address);
}

// The set may have changed since the client came.
bool session::is_still_wanted(upstream_id id) {
  const auto known = context_.pool.status(context_.loop.now()).upstreams;
  return std::any_of(known.begin(), known.end(),
                     [id](const upstream_status& each) { return each.id == id && !each.removed; });
}

void session::connect_to(attempt& to, const net::endpoint& address) {
  const int fd = net::open_tcp(address);
  if (fd < 0) return connect_failed(to, errno);
  net::send_at_once(fd);
  const auto target = net::to_address(address);
  const bool connected = connect(fd, target.get(), target.size) == 0;
  if (!connected && errno != EINPROGRESS) {
    const int error = errno;
    close(fd);
    return connect_failed(to, error);
  }
  to.socket = context_.loop.watch(fd, net::edge_events, on_server, &to);
  if (!to.socket) return connect_failed(to, errno);
  to.seen.fd = fd;
  to.seen.writable = connected;
  if (connected) note_connected(to);
}

void session::note_connected(attempt& to) {
  to.is_connected = true;
  report(to, dial_result::connected);
  plan_.connected(to.index, context_.loop.now());
  send_flight(to);
}

void session::connect_failed(attempt& to, int error) {
  const auto result = meaning_of(error);
  if (result == dial_result::local_trouble) context_.local_trouble(context_.owner, error);
  report(to, result);
  drop(to);
  plan_.failed(to.index, context_.loop.now());
}

void session::lost(attempt& gone) {
  report(gone, dial_result::lost);
  drop(gone);
  plan_.ended(gone.index, context_.loop.now());
}

void session::give_up_on(upstream_id id) {
  for (const auto& each : attempts_) {
    if (each->is_over || candidates_[each->index].id != id) continue;
    if (!each->is_connected) report(*each, dial_result::abandoned);
    drop(*each);
    plan_.ended(each->index, context_.loop.now());
  }
  carry_out();
}

void session::look_at_client() {
  if (seen_.error != 0) return finish(end_reason::client_reset);
  if (!seen_.readable) return;
  const auto size = peek();
  if (!size) return;
  if (*size == 0) return finish(end_reason::client_closed);
  if (*size == flight_size_) return;
  flight_size_ = *size;
  const auto bytes = context_.scratch.first(flight_size_);
  const auto kind = flight_size_ > flight_limit ? flight::other : classify_flight(bytes);
  plan_.flight_is(kind, context_.loop.now());
  for (const auto& each : attempts_) send_flight(*each, bytes);
}

// Into the scratch buffer. Nothing: no bytes and no end yet, or the client is gone.
std::optional<std::size_t> session::peek() {
  const auto count =
      recv(client_.fd(), context_.scratch.data(), context_.scratch.size(), MSG_PEEK | MSG_DONTWAIT);
  seen_.readable = false;
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno != EAGAIN && errno != EINTR) finish(end_reason::client_reset);
  return std::nullopt;
}

void session::send_flight(attempt& to) {
  if (over_ || to.sent >= flight_size_ || !plan_.may_send(to.index)) return;
  const auto size = peek();
  if (!size || *size < flight_size_) return;
  if (*size > flight_size_) seen_.readable = true;  // an event is on its way, too
  send_flight(to, context_.scratch.first(flight_size_));
}

void session::send_flight(attempt& to, std::span<const std::uint8_t> bytes) {
  if (to.is_over || !to.seen.writable || !plan_.may_send(to.index)) return;
  const auto rest = bytes.subspan(to.sent);
  const auto count = send(to.socket.fd(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count < 0) {
    to.seen.writable = false;  // or an error, which the next event tells
    return;
  }
  to.sent += static_cast<std::size_t>(count);
  to.share->sent(static_cast<std::size_t>(count), context_.loop.now());
  plan_.sending(to.index);
  if (to.sent == bytes.size()) plan_.sent(to.index, context_.loop.now());
}

void session::look_for_answer(attempt& at) {
  std::uint8_t byte = 0;
  if (at.seen.hung_up) {  // an end or an error; bytes before it?
    const auto count = recv(at.socket.fd(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count <= 0) return lost(at);
  }
  plan_.answered(at.index);
}

void session::ask_acknowledged(const attempt& at) {
  if (net::unacknowledged_bytes(at.socket.fd()) > 0) return;
  const auto facts = net::facts_of(at.socket.fd());
  if (!facts) return;
  const auto when = context_.loop.now() - facts->since_acknowledgement;
  plan_.acknowledged(at.index, std::max(when, at.started));
}

void session::hand_over(attempt& to) {
  for (auto left = to.sent; left > 0;) {  // the server has it: the client's socket need not keep it
    const auto count = recv(client_.fd(), nullptr, left, MSG_TRUNC | MSG_DONTWAIT);
    if (count < 0 && seen_.error == 0) seen_.error = errno;  // it has left: the relay says so
    if (count <= 0) break;
    left -= static_cast<std::size_t>(count);
  }
  if (flight_size_ > to.sent || seen_.hung_up) seen_.readable = true;
  seen_.writable = true;
  over_ = true;
  timer_.cancel();
  to.is_over = true;
  context_.connected(context_.owner, *this,
                     {.client = std::move(client_),
                      .server = std::move(to.socket),
                      .client_seen = seen_,
                      .server_seen = to.seen,
                      .share = std::move(to.share),
                      .accepted = accepted_,
                      .client_is_remote = client_is_remote_});
}

void session::report(const attempt& of, dial_result result) {
  const auto now = context_.loop.now();
  const auto id = candidates_[of.index].id;
  context_.pool.report_dial(id, result, now);
  context_.dial_ended(context_.owner, id, result,
                      std::chrono::duration_cast<std::chrono::microseconds>(now - of.started));
}

void session::drop(attempt& gone) {
  if (gone.is_connected) net::reset(gone.socket.fd());
  gone.socket.close();
  gone.share.reset();
  gone.is_over = true;
}

void session::abort(end_reason why) {
  net::reset(client_.fd());
  finish(why);
}

void session::finish(end_reason why) {
  over_ = true;
  timer_.cancel();
  client_.close();
  for (const auto& each : attempts_) {
    if (each->is_over) continue;
    if (!each->is_connected) report(*each, dial_result::abandoned);
    drop(*each);
  }
  context_.ended(context_.owner, *this, why);
}

std::optional<int> session::hand_over() {
  if (auto* const spent = find_spent()) {
    for (const auto& each : attempts_)
      if (each.get() != spent && !each->is_over) drop(*each);
    hand_over(*spent);
    return std::nullopt;
  }
  const int client = client_.release();
  finish(end_reason::shutdown);
  return client;
}

session::attempt* session::find_spent() {
  if (plan_.may_send_again()) return nullptr;
  for (const auto& each : attempts_)
    if (!each->is_over && each->sent > 0) return each.get();
  return nullptr;
}

session::attempt* session::find(std::size_t index) {
  for (const auto& each : attempts_)
    if (each->index == index && !each->is_over) return each.get();
  return nullptr;
}

}  // namespace kubelane::proxy
