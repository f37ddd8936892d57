#include "proxy/relay.hpp"

#include "net/socket.hpp"
#include "net/socket_facts.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t event_budget = 64 * 1024;  // then it is a bulk stream: after the others
constexpr std::size_t turn_budget = 256 * 1024;
constexpr milliseconds quiet{250};
constexpr milliseconds farewell{1'000};
constexpr milliseconds reset_limit{5'000};
constexpr milliseconds longest_pause{50};
constexpr milliseconds silence_limit{30'000};
constexpr net::keep_alive server_keep_alive{.idle = 15s, .interval = 5s, .count = 3};

}  // namespace

/// While one of these lives, the record says that its socket calls may be a step ahead of it.
class relay::step {
 public:
  explicit step(relay& of) noexcept : of_(of) { of.note(kept_record::busy); }
  ~step() {
    of_.note_errors();
    if (of_.record_ != nullptr) of_.record_->clear(kept_record::busy);
  }
  step(const step&) = delete;
  step& operator=(const step&) = delete;

 private:
  relay& of_;
};

relay::relay(const relay_context& context, beginning from)
    : context_(context),
      client_{.socket = std::move(from.client), .seen = from.client_seen},
      server_{.socket = std::move(from.server), .seen = from.server_seen},
      up_(context.pipes),
      down_(context.pipes),
      share_(std::move(from.share)),
      timer_(context.loop, on_timer, this),
      rest_(on_turn, this),
      accepted_(from.accepted),
      last_bytes_(context.loop.now()),
      client_is_remote_(from.client_is_remote) {
  client_.socket.retarget(on_client, this);
  server_.socket.retarget(on_server, this);
}

relay::relay(const relay_context& context, beginning from, const remains& kept)
    : relay(context, std::move(from)) {
  up_.adopt(kept.up);
  down_.adopt(kept.down);
  kept_as(*kept.record);
  // Bytes that were sent before may still be on their way; the first check finds out.
  client_.owes_acknowledgement = server_.owes_acknowledgement = true;
  if (record_->has(kept_record::client_broken)) client_.seen.error = ECONNRESET;
  if (record_->has(kept_record::server_broken)) server_.seen.error = ECONNRESET;
  // It was about to say so, or has just said it; twice is once.
  if (record_->has(kept_record::told_client)) tell_end(client_);
  if (record_->has(kept_record::told_server)) tell_end(server_);
  if (client_.told_end || server_.told_end)
    first_ended_ = record_->has(kept_record::server_ended_first) ? &server_ : &client_;
  for (auto* const each : {&client_.seen, &server_.seen})
    each->readable = each->writable = true;  // until a call says otherwise
  if (record_->has(kept_record::leaving)) enter_leaving();
}

[[gnu::hot]] void relay::on_client(void* self, std::uint32_t events) {
  auto& it = *static_cast<relay*>(self);
  it.on_event(it.client_, events);
}

[[gnu::hot]] void relay::on_server(void* self, std::uint32_t events) {
  auto& it = *static_cast<relay*>(self);
  it.on_event(it.server_, events);
}

void relay::on_turn(void* self) {
  auto& it = *static_cast<relay*>(self);
  const step doing(it);
  it.run(turn_budget);
}

[[gnu::hot]] void relay::on_event(side& at, std::uint32_t events) {
  const step doing(*this);
  note_events(at.seen, events);
  if (!rest_.waiting()) run(event_budget);
}

void relay::resume() {
  const step doing(*this);
  for (auto* const each : {&client_.seen, &server_.seen}) {
    if (!std::exchange(each->unproven, false)) continue;
    each->readable = true;
    each->read_turn = turn();  // if there was something, then read on until there is nothing
  }
  if (!rest_.waiting()) run(event_budget);
}

[[gnu::hot]] void relay::run(std::size_t budget) {
  switch (phase_) {
    case phase::flowing:
      return flow(budget);
    case phase::leaving:
      return leave(budget);
    case phase::passing_reset:
      return pass_reset(budget);
    case phase::over:
      return;
  }
}

[[gnu::hot]] pump_status relay::move(side& from, side& to, std::size_t budget) {
  pump::moved sum;
  const auto status = pump_from(from).run(from.seen, to.seen, budget, turn(), sum);
  if (sum.read == 0 && sum.written == 0) return status;
  const auto now = context_.loop.now();
  last_bytes_ = now;
  if (sum.written > 0 && !std::exchange(to.owes_acknowledgement, true)) become_restless();
  if (&from == &server_ && sum.read > 0) share_->heard(sum.read, now);
  if (&from == &client_ && sum.written > 0) share_->sent(sum.written, now);
  return status;
}

[[gnu::hot]] void relay::flow(std::size_t budget) {
  const auto up = up_.is_idle(client_.seen) ? pump_status::idle : move(client_, server_, budget);
  const auto down =
      down_.is_idle(server_.seen) ? pump_status::idle : move(server_, client_, budget);
  if (client_.seen.error != 0) return begin_passing_reset(client_);
  if (server_.seen.error != 0) return begin_passing_reset(server_);
  if (up_.source_ended()) share_->client_left();
  if (up == pump_status::ended && !pass_end_on(server_)) return;
  if (down == pump_status::ended && !pass_end_on(client_)) return;
  wait_for(up, down);
}

[[gnu::hot]] void relay::wait_for(pump_status up, pump_status down) {
  if (up == pump_status::spent || down == pump_status::spent) context_.loop.again(rest_);
  if (up == pump_status::no_pipe || down == pump_status::no_pipe)
    context_.starved(context_.owner, *this);
  if (client_.seen.unproven || server_.seen.unproven)
    context_.unproven(context_.owner, *this);
  else
    doubtful.unlink();
}

// Tells `to` that the other side has ended. False if that was the last thing to do.
bool relay::pass_end_on(side& to) {
  if (to.told_end) return true;
  side& ended = other(to);
  if (first_ended_ == nullptr) first_ended_ = &ended;
  if (ended.told_end) {  // both ways: closing says it
    finish(first_ended_ == &client_ ? end_reason::client_closed : end_reason::server_closed);
    return false;
  }
  last_bytes_ = context_.loop.now();
  if (first_ended_ == &server_) note(kept_record::server_ended_first);
  tell_end(to);
  return true;
}

void relay::tell_end(side& to) {
  note(&to == &client_ ? kept_record::told_client : kept_record::told_server);
  to.told_end = true;
  shutdown(to.socket.fd(), SHUT_WR);
  become_restless();
}

void relay::leave_at(time_point due, const departure& how) {
  if (phase_ != phase::flowing) return;
  departure_ = how;
  timer_.arm(due);
}

void relay::stay() {
  if (phase_ != phase::flowing) return;
  departure_ = {};
  timer_.cancel();
}

void relay::on_timer(void* self) {
  auto& it = *static_cast<relay*>(self);
  const step doing(it);
  switch (it.phase_) {
    case phase::flowing:
      return it.depart();
    case phase::leaving:
      return it.abort(it.departure_.why);
    case phase::passing_reset:
      return it.pass_reset(event_budget);
    case phase::over:
      return;
  }
}

void relay::depart() {
  const auto now = context_.loop.now();
  const bool drains = departure_.how == departure::manner::drain;
  if (drains && now < departure_.busy_until && now - last_bytes_ < quiet)
    return timer_.arm(std::min(last_bytes_ + quiet, departure_.busy_until));
  context_.forced(context_.owner, upstream(), departure_.cause);
  if (drains) return begin_leaving();
  abort(departure_.why);
}

void relay::begin_leaving() {
  enter_leaving();
  leave(turn_budget);
}

void relay::enter_leaving() {
  phase_ = phase::leaving;
  note(kept_record::leaving);
  timer_.arm(context_.loop.now() + farewell);
  // What has arrived by now is delivered, what comes later is not.
  up_.limit(net::unread_bytes(client_.socket.fd()));
  down_.limit(net::unread_bytes(server_.socket.fd()));
  client_.seen.readable = server_.seen.readable = true;
}

void relay::leave(std::size_t budget) {
  const bool up = has_left(client_, server_, budget);
  const bool down = has_left(server_, client_, budget);
  if (client_.seen.error != 0 || server_.seen.error != 0) return abort(departure_.why);
  if (up && down) finish(departure_.why);
}

// One direction is over: its tail was delivered, FIN was sent, and the source has ended too.
bool relay::has_left(side& from, side& to, std::size_t budget) {
  if (!to.told_end) {
    const auto status = move(from, to, budget);
    wait_for(status, status);
    if (status != pump_status::ended) return false;
    tell_end(to);
  }
  return net::discard_unread(from.socket.fd());
}

void relay::begin_passing_reset(side& broken) {
  side& victim = other(broken);
  if (victim.seen.error != 0) return finish(why_broken(broken));
  share_->client_left();
  phase_ = phase::passing_reset;
  broken_ = &broken;
  limit_ = context_.loop.now() + reset_limit;
  pump_from(victim).discard();
  broken.seen.readable = broken.seen.hung_up = true;
  pass_reset(event_budget);
}

void relay::pass_reset(std::size_t budget) {
  side& victim = other(*broken_);
  const auto why = why_broken(*broken_);
  const auto now = context_.loop.now();
  const auto status = victim.told_end ? pump_status::ended : move(*broken_, victim, budget);
  if (victim.seen.error != 0) return finish(why);
  const bool delivered = status == pump_status::ended || status == pump_status::source_failed;
  if (now >= limit_ || (delivered && net::unacknowledged_bytes(victim.socket.fd()) == 0))
    return abort(why);
  wait_for(status, status);
  timer_.arm(std::min(now + pause_, limit_));
  pause_ = std::min(2 * pause_, longest_pause);
}

end_reason relay::why_broken(const side& broken) const {
  const int error = broken.seen.error;
  if (error != ECONNRESET && error != EPIPE) return end_reason::error;
  return &broken == &client_ ? end_reason::client_reset : end_reason::server_reset;
}

relay::attention relay::check(time_point now) {
  if (phase_ != phase::flowing) return attention::none;
  if (!keeps_alive_ && !is_young(now)) {  // short connections do without these calls
    net::keep_alive_on(server_.socket.fd(), server_keep_alive);
    keeps_alive_ = true;
  }
  const bool half_closed = client_.told_end != server_.told_end;
  if (half_closed && now - last_bytes_ >= context_.limits.half_closed_timeout)
    abort(end_reason::half_closed_timeout);
  else if (is_dead(server_, now) || (client_is_remote_ && is_dead(client_, now)))
    abort(end_reason::unacknowledged);
  return needs_attention() ? attention::needed : attention::none;
}

bool relay::needs_attention() const noexcept {
  if (phase_ != phase::flowing) return false;
  const bool half_closed = client_.told_end != server_.told_end;
  return !keeps_alive_ || half_closed || server_.owes_acknowledgement ||
         (client_is_remote_ && client_.owes_acknowledgement);
}

bool relay::is_dead(side& at, time_point now) {
  if (!at.owes_acknowledgement) return false;
  const auto facts = net::facts_of(at.socket.fd());
  if (!facts || (facts->unacknowledged_segments == 0 && facts->unsent_bytes == 0)) {
    at.owes_acknowledgement = false;
    at.owing_since = {};
    return false;
  }
  if (at.owing_since == time_point{}) at.owing_since = now;
  const auto owed_for = std::chrono::duration_cast<milliseconds>(now - at.owing_since);
  return net::is_silent(*facts, owed_for, silence_limit);
}

void relay::abort(end_reason why) {
  note(kept_record::aborted);
  net::reset(client_.socket.fd());
  net::reset(server_.socket.fd());
  finish(why);
}

void relay::finish(end_reason why) {
  phase_ = phase::over;
  note(kept_record::ended);
  client_.socket.close();
  server_.socket.close();
  up_.discard();
  down_.discard();
  timer_.cancel();
  rest_.cancel();
  starving.unlink();
  doubtful.unlink();
  restless.unlink();
  context_.ended(context_.owner, *this, why);
  record_ = nullptr;
  share_.reset();
}

void relay::kept_as(kept_record& record) noexcept {
  record_ = &record;
  for (auto* const each : {&client_, &server_})
    each->socket.has(net::watched_fd::copies::end_with_it);
}

void relay::note(std::uint32_t flag) noexcept {
  if (record_ != nullptr) record_->set(flag);
}

[[gnu::hot]] void relay::note_errors() noexcept {
  if (client_.seen.error != 0) note(kept_record::client_broken);
  if (server_.seen.error != 0) note(kept_record::server_broken);
}

std::optional<std::array<int, 4>> relay::descriptors_to_keep() {
  if (phase_ == phase::over) return std::nullopt;
  const int up = up_.own_pipe();
  const int down = up < 0 ? -1 : down_.own_pipe();
  if (down < 0) return std::nullopt;
  return std::array{client_.socket.fd(), server_.socket.fd(), up, down};
}

void relay::describe(kept_record& to) const {
  using record = kept_record;
  const auto flag = [&to](bool holds, std::uint32_t bit) {
    if (holds) to.set(bit);
  };
  flag(client_is_remote_, record::remote_client);
  flag(client_.told_end, record::told_client);
  flag(server_.told_end, record::told_server);
  flag(client_.seen.error != 0, record::client_broken);
  flag(server_.seen.error != 0, record::server_broken);
  flag(first_ended_ == &server_, record::server_ended_first);
  flag(phase_ == phase::leaving, record::leaving);
  to.accepted = std::chrono::nanoseconds(accepted_.time_since_epoch()).count();
  to.client = net::inode_of(client_.socket.fd());
  to.server = net::inode_of(server_.socket.fd());
  to.up = net::inode_of(up_.pipe_descriptor());
  to.down = net::inode_of(down_.pipe_descriptor());
}

}  // namespace kubelane::proxy
