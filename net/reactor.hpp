#pragma once

#include "net/lag_meter.hpp"
#include "net/reactor_asio.hpp"

#include <boost/intrusive/list.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kubelane::net {

using clock = std::chrono::steady_clock;
using time_point = clock::time_point;
using std::chrono::milliseconds;

class reactor;

/// A descriptor that is registered in the reactor: once, for its whole life. Owns both.
///
/// Events go to a function and its owner; `retarget` hands the descriptor over to another owner
/// without another system call. Closing is final at once: no event of the same turn comes any more.
class watched_fd {
 public:
  /// `events` are those of epoll(7). The handler may close this, and destroy `owner`.
  using handler = void (*)(void* owner, std::uint32_t events);

  watched_fd() = default;
  watched_fd(watched_fd&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
  watched_fd& operator=(watched_fd&& other) noexcept;
  ~watched_fd() { close(); }

  /// Whether another process holds the descriptor too. Closing ours alone would then tell the peer
  /// nothing, and leave a registration for an owner that is gone.
  enum class copies : std::uint8_t {
    none,
    end_with_it,  ///< `close` shuts the socket down for all
    left_alone,   ///< `close` is ours alone
  };
  void has(copies elsewhere) noexcept { entry_->elsewhere = elsewhere; }

  explicit operator bool() const noexcept { return entry_ != nullptr; }
  /// The descriptor; -1 if none.
  int fd() const noexcept { return entry_ == nullptr ? -1 : entry_->fd; }
  void retarget(handler on_event, void* owner) noexcept;
  /// Changes what is waited for: a system call.
  void change(std::uint32_t events);
  void close() noexcept;
  /// Ends the registration and gives the descriptor away; for one that another process holds too.
  int release() noexcept;

 private:
  friend class reactor;
  struct entry {
    handler on_event;
    void* owner;
    reactor* loop;
    int fd;
    copies elsewhere = copies::none;
  };
  explicit watched_fd(entry* registered) noexcept : entry_(registered) {}
  void unregister() noexcept;
  void forget() noexcept;

  entry* entry_ = nullptr;
};

/// One point in time at which the reactor calls a function. Cancels itself when destroyed.
class timer {
 public:
  using handler = void (*)(void* owner);

  timer(reactor& loop, handler on_due, void* owner) noexcept
      : loop_(&loop), on_due_(on_due), owner_(owner) {}
  timer(const timer&) = delete;
  timer& operator=(const timer&) = delete;
  ~timer() { cancel(); }

  /// Calls the function at or soon after `due`, once; replaces an earlier time.
  void arm(time_point due);
  void cancel() noexcept;
  bool armed() const noexcept { return place_ != idle; }
  time_point due() const noexcept { return due_; }

 private:
  friend class reactor;
  static constexpr std::uint32_t idle = UINT32_MAX;

  reactor* loop_;
  handler on_due_;
  void* owner_;
  time_point due_{};
  std::uint32_t place_ = idle;  // in the reactor's heap
};

/// Work that was put off for the sake of others: it runs again next turn. See reactor::again.
class deferred {
 public:
  using handler = void (*)(void* owner);
  deferred(handler on_turn, void* owner) noexcept : on_turn_(on_turn), owner_(owner) {}

  bool waiting() const noexcept { return hook_.is_linked(); }
  void cancel() noexcept { hook_.unlink(); }

 private:
  friend class reactor;
  using hook = boost::intrusive::list_member_hook<
      boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;
  hook hook_;
  handler on_turn_;
  void* owner_;
};

/// The loop of the process' one thread: an epoll instance that waits for our descriptors, our
/// timers and Asio's, whose `io_context` is nested inside.
///
/// A turn: wait; take the time; events; due timers; Asio's handlers; put-off work, for a
/// millisecond at most; the turn hook; then what was to be destroyed. Events come before timers, so
/// that after a stall an answer that has arrived counts before the limit that has passed.
///
/// Handlers may be posted to Asio from this thread, anywhere: they run in the same or the next
/// turn. Posting from another thread is not supported: it wakes nobody (it runs at the next tick,
/// 100 ms). SIGPIPE is ignored from construction on: splice(2) has no MSG_NOSIGNAL.
class reactor {
 public:
  explicit reactor(boost::asio::io_context& io);
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// When this turn began. Between turns: the last one's.
  time_point now() const noexcept { return now_; }
  /// Counts turns.
  std::uint64_t turn_number() const noexcept { return turns_; }

  /// Turns until `stop`.
  void run();
  /// Ends `run` after this turn.
  void stop() noexcept { stopped_ = true; }
  /// One turn; waits at most `limit` for something to do.
  void turn(milliseconds limit);

  /// Registers a descriptor and takes it over, closing it when that fails (nothing is returned
  /// then; errno says why). `events` as for epoll_ctl(2); what is ready already is reported.
  watched_fd watch(int fd, std::uint32_t events, watched_fd::handler on_event, void* owner);

  /// Runs `work` in the next turn (in this one, if its events are being handled).
  void again(deferred& work);
  /// Calls `destroy(object)` when the turn ends and nothing of it is on the stack.
  void destroy_later(void* object, void (*destroy)(void*));
  /// Calls `hook(owner)` once a turn, after everything else; nullptr: no more. One at a time.
  void on_turn(timer::handler hook, void* owner = nullptr) noexcept {
    hook_ = hook;
    hook_owner_ = owner;
  }

  /// When regular work that was due then is due next: whole periods later, half a period from now
  /// at the soonest. So work of several kinds shares turns, which cost more than most of it.
  time_point next_after(time_point due, milliseconds period) const;

  /// The worst lateness of this loop since then: of a tick every 100 ms, so a stall shorter than
  /// that may not show. Reaches back a minute.
  milliseconds worst_lag_since(time_point since) const;

 private:
  friend class timer;
  friend class watched_fd;
  using deferred_list = boost::intrusive::list<
      deferred, boost::intrusive::member_hook<deferred, deferred::hook, &deferred::hook_>,
      boost::intrusive::constant_time_size<false>>;
  struct doomed {
    void* object;
    void (*destroy)(void*);
  };

  void turn_within(int limit);
  bool has_more();
  void set_alarm();
  bool handle_events(int limit);
  void run_due_timers();
  void run_deferred();
  void bury();
  static void tick(void* self);

  void place(std::uint32_t at, timer* moved) noexcept;
  void sift_up(std::uint32_t at) noexcept;
  void sift_down(std::uint32_t at) noexcept;
  void remove(timer& gone) noexcept;

  asio_guest asio_;
  int epoll_;
  int alarm_;               // a timerfd
  time_point alarm_due_{};  // what it is set to
  time_point now_;
  std::uint64_t turns_ = 0;
  bool stopped_ = false;
  bool asio_ready_ = true;
  std::vector<timer*> heap_;  // earliest first
  deferred_list deferred_;
  std::vector<doomed> doomed_;
  timer::handler hook_ = nullptr;
  void* hook_owner_ = nullptr;
  lag_meter lag_;
  timer tick_;
};

}  // namespace kubelane::net
