#include "net/reactor.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

namespace kubelane::net {
namespace {

constexpr int events_a_wait = 256;
constexpr int waits_a_turn = 8;
constexpr int handlers_a_turn = 256;
constexpr milliseconds tick_period{100};
constexpr milliseconds deferred_share{1};

void ignore(void*, std::uint32_t) {}

// Not the library's epoll_wait(2): in a process with threads, that is a point of cancellation.
int wait_for_events(int epoll, std::array<epoll_event, events_a_wait>& events, int limit) {
  return static_cast<int>(syscall(SYS_epoll_pwait, epoll, events.data(), events_a_wait, limit,
                                  nullptr, std::size_t{0}));
}

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::system_category(), what);
  return descriptor;
}

}  // namespace

watched_fd& watched_fd::operator=(watched_fd&& other) noexcept {
  if (this != &other) {
    close();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

void watched_fd::retarget(handler on_event, void* owner) noexcept {
  entry_->on_event = on_event;
  entry_->owner = owner;
}

void watched_fd::change(std::uint32_t events) {
  epoll_event change{};
  change.events = events;
  change.data.ptr = entry_;
  epoll_ctl(entry_->loop->epoll_, EPOLL_CTL_MOD, entry_->fd, &change);
}

void watched_fd::close() noexcept {
  if (entry_ == nullptr) return;
  if (entry_->elsewhere == copies::end_with_it) ::shutdown(entry_->fd, SHUT_RDWR);
  // The last descriptor's end is that of the registration; this is the last if there are no copies.
  if (entry_->elsewhere != copies::none) unregister();
  ::close(entry_->fd);
  forget();
}

int watched_fd::release() noexcept {
  const int fd = entry_->fd;
  unregister();
  forget();
  return fd;
}

void watched_fd::unregister() noexcept {
  epoll_ctl(entry_->loop->epoll_, EPOLL_CTL_DEL, entry_->fd, nullptr);
}

// Events of this turn may still be on their way to it.
void watched_fd::forget() noexcept {
  auto* const gone = std::exchange(entry_, nullptr);
  gone->on_event = ignore;
  gone->loop->destroy_later(gone, [](void* object) { delete static_cast<entry*>(object); });
}

void timer::arm(time_point due) {
  due_ = due;
  if (place_ == idle) {
    place_ = static_cast<std::uint32_t>(loop_->heap_.size());
    loop_->heap_.push_back(this);
    loop_->sift_up(place_);
    return;
  }
  loop_->sift_up(place_);
  loop_->sift_down(place_);
}

void timer::cancel() noexcept {
  if (place_ != idle) loop_->remove(*this);
}

reactor::reactor(boost::asio::io_context& io)
    : asio_(io),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      alarm_(
          checked(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")),
      now_(clock::now()),
      tick_(*this, tick, this) {
  std::signal(SIGPIPE, SIG_IGN);
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.ptr = &asio_;
  checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, asio_.descriptor(), &wanted), "epoll_ctl");
  wanted.data.ptr = &alarm_;
  checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, alarm_, &wanted), "epoll_ctl");
  tick_.arm(now_ + tick_period);
}

reactor::~reactor() {
  tick_.cancel();
  bury();
  assert(heap_.empty() && "a timer outlives its reactor");
  ::close(alarm_);
  ::close(epoll_);
}

[[gnu::hot]] void reactor::run() {
  stopped_ = false;
  while (!stopped_) turn_within(-1);
}

void reactor::turn(milliseconds limit) {
  turn_within(static_cast<int>(limit.count()));
}

[[gnu::hot]] void reactor::turn_within(int limit) {
  ++turns_;
  const bool drained = handle_events(has_more() ? 0 : limit);
  if (drained && heap_.front()->due_ <= now_) run_due_timers();
  if (asio_ready_) asio_ready_ = asio_.poll(handlers_a_turn);
  if (!deferred_.empty()) run_deferred();
  if (hook_ != nullptr) hook_(hook_owner_);
  if (!doomed_.empty()) bury();
}

// There is something to do that no event will tell; otherwise the alarm is set.
[[gnu::hot]] bool reactor::has_more() {
  asio_ready_ = asio_ready_ || asio_.has_posted();
  set_alarm();
  return asio_ready_ || !deferred_.empty();
}

// A time-out of epoll_wait would start and cancel a timer of the kernel's each turn, which costs
// more than handling a small message. This one is set when the first time changes.
[[gnu::hot]] void reactor::set_alarm() {
  const auto first = heap_.front()->due_;  // there is always the tick
  if (first == alarm_due_) return;
  alarm_due_ = first;
  const auto since_boot = std::max(first.time_since_epoch(), clock::duration{1});
  const auto whole = std::chrono::floor<std::chrono::seconds>(since_boot);
  itimerspec when{};
  when.it_value.tv_sec = whole.count();
  when.it_value.tv_nsec = (since_boot - whole).count();
  timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &when, nullptr);
}

// False if there may be more events, so that time-outs have to wait.
[[gnu::hot]] bool reactor::handle_events(int limit) {
  std::array<epoll_event, events_a_wait> events;
  for (int wait = 0; wait < waits_a_turn; ++wait) {
    const int count = wait_for_events(epoll_, events, wait == 0 ? limit : 0);
    now_ = clock::now();
    for (int i = 0; i < count; ++i) {
      const auto& seen = events[static_cast<std::size_t>(i)];
      if (seen.data.ptr == &asio_) {
        asio_ready_ = true;
      } else if (seen.data.ptr == &alarm_) {
        alarm_due_ = {};  // setting it again ends the event
      } else {
        auto* const target = static_cast<watched_fd::entry*>(seen.data.ptr);
        target->on_event(target->owner, seen.events);
      }
    }
    if (count < events_a_wait) return true;
  }
  return false;
}

void reactor::run_due_timers() {
  // Bounded, so that a timer that is armed for now again cannot hold up the turn.
  for (auto left = heap_.size(); left > 0 && !heap_.empty(); --left) {
    timer& first = *heap_.front();
    if (first.due_ > now_) return;
    remove(first);
    first.on_due_(first.owner_);
  }
}

[[gnu::hot]] void reactor::run_deferred() {
  deferred_list due;
  due.swap(deferred_);
  const auto until = clock::now() + deferred_share;
  while (!due.empty()) {
    deferred& work = due.front();
    due.pop_front();
    work.on_turn_(work.owner_);
    if (clock::now() >= until) break;
  }
  deferred_.splice(deferred_.begin(), due);  // those go first next time
}

[[gnu::hot]] void reactor::bury() {
  for (std::size_t i = 0; i < doomed_.size(); ++i) {  // destroying may doom more
    const auto next = doomed_[i];
    next.destroy(next.object);
  }
  doomed_.clear();
}

watched_fd reactor::watch(int fd, std::uint32_t events, watched_fd::handler on_event, void* owner) {
  auto* const added = new watched_fd::entry{on_event, owner, this, fd, watched_fd::copies::none};
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = added;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &wanted) == 0) return watched_fd(added);
  const int error = errno;
  delete added;
  ::close(fd);
  errno = error;
  return {};
}

void reactor::again(deferred& work) {
  if (!work.waiting()) deferred_.push_back(work);
}

void reactor::destroy_later(void* object, void (*destroy)(void*)) {
  doomed_.push_back({object, destroy});
}

milliseconds reactor::worst_lag_since(time_point since) const {
  return std::chrono::duration_cast<milliseconds>(
      lag_.worst_since(since, tick_.due(), clock::now()));
}

time_point reactor::next_after(time_point due, milliseconds period) const {
  const auto next = due + period;
  const auto soonest = now_ + period / 2;
  return next >= soonest ? next : next + ((soonest - next) / period + 1) * period;
}

void reactor::tick(void* self) {
  auto& loop = *static_cast<reactor*>(self);
  loop.lag_.note(loop.tick_.due(), loop.now_);
  // On a grid, so that other regular work, begun in the same turn, stays in one turn with it.
  loop.tick_.arm(loop.next_after(loop.tick_.due(), tick_period));
  loop.asio_ready_ = true;
}

void reactor::place(std::uint32_t at, timer* moved) noexcept {
  heap_[at] = moved;
  moved->place_ = at;
}

void reactor::sift_up(std::uint32_t at) noexcept {
  timer* const moved = heap_[at];
  while (at > 0) {
    const auto parent = (at - 1) / 2;
    if (heap_[parent]->due_ <= moved->due_) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, moved);
}

void reactor::sift_down(std::uint32_t at) noexcept {
  timer* const moved = heap_[at];
  const auto size = static_cast<std::uint32_t>(heap_.size());
  for (auto child = 2 * at + 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size && heap_[child + 1]->due_ < heap_[child]->due_) ++child;
    if (moved->due_ <= heap_[child]->due_) break;
    place(at, heap_[child]);
    at = child;
  }
  place(at, moved);
}

void reactor::remove(timer& gone) noexcept {
  const auto at = std::exchange(gone.place_, timer::idle);
  timer* const last = heap_.back();
  heap_.pop_back();
  if (last == &gone) return;
  place(at, last);
  sift_up(at);
  sift_down(last->place_);
}

}  // namespace kubelane::net
