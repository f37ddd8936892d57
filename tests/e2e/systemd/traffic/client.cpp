#include "client.hpp"

#include "lane.hpp"

#include <fcntl.h>

#include <list>
#include <memory>

namespace traffic {
namespace {

constexpr std::int64_t reopen_after = 100'000'000;
constexpr std::int64_t stuck_after = 5'000'000'000;
constexpr std::int64_t finish_limit = 30'000'000'000;

class client {
 public:
  client(std::uint16_t port, const load& wanted) : port_(port), wanted_(wanted) {
    ::fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    poller_.add(STDIN_FILENO, EPOLLIN, nullptr);
    open_many(wanted.streams, lane::role::stream);
    open_many(wanted.pingers, lane::role::pinger);
    open_many(wanted.silent, lane::role::silent);
    open_many(wanted.answers, lane::role::answers);
  }

  int run() {
    while (!finishing_) turn_once();
    const auto deadline = now() + finish_limit;
    for (const auto& one : held_) one->finish(seen_);
    while (now() < deadline && !is_done()) turn_once();
    mark("end");
    for (const auto& one : held_)
      if (one->what() == lane::role::stream) one->print_stream();
    return std::all_of(held_.begin(), held_.end(), [](const auto& one) { return one->is_whole(); })
               ? 0
               : 1;
  }

 private:
  void open_many(int count, lane::role what) {
    for (int i = 0; i < count; ++i)
      held_.push_back(std::make_unique<lane>(what, ++last_id_, port_, poller_));
  }

  void turn_once() {
    for (const auto& event : poller_.wait(1)) {
      if (event.data.ptr == nullptr)
        obey();
      else
        static_cast<lane*>(event.data.ptr)->on_events(event.events, seen_);
    }
    const auto at = now();
    for (const auto& one : held_) one->tick(at, seen_);
    if (!finishing_) {
      open_fresh(at);
      reopen(at);
    }
    sweep_fresh(at);
  }

  void open_fresh(std::int64_t at) {
    if (wanted_.fresh_every == 0 || at < next_fresh_) return;
    next_fresh_ = at + wanted_.fresh_every * 1'000'000LL;
    fresh_.push_back(std::make_unique<lane>(lane::role::fresh, ++last_id_, port_, poller_));
  }

  void reopen(std::int64_t at) {
    if (at < next_reopen_) return;
    next_reopen_ = at + reopen_after;
    for (auto& one : held_)
      if (one->is() == lane::state::lost || one->is() == lane::state::refused)
        one = std::make_unique<lane>(one->what(), ++last_id_, port_, poller_);
  }

  void sweep_fresh(std::int64_t at) {
    for (auto one = fresh_.begin(); one != fresh_.end();) {
      const bool ended = count((*one)->is(), at - (*one)->opened() > stuck_after);
      one = ended ? fresh_.erase(one) : std::next(one);
    }
  }

  /// True if the fresh connection has ended.
  bool count(lane::state how, bool stuck) {
    switch (how) {
      case lane::state::finished:
        ++seen_.fresh;
        return true;
      case lane::state::refused:
        ++seen_.refused;
        return true;
      case lane::state::lost:
        ++seen_.fresh_ended;
        return true;
      case lane::state::connecting:
      case lane::state::open:
        seen_.fresh_stuck += stuck ? 1 : 0;
        return stuck;
    }
    return true;
  }

  void obey() {
    char text[256];
    const auto n = ::read(STDIN_FILENO, text, sizeof text);
    if (n <= 0) finishing_ = true;
    if (n > 0) commands_.append(text, static_cast<std::size_t>(n));
    for (auto end = commands_.find('\n'); end != std::string::npos; end = commands_.find('\n')) {
      const auto line = commands_.substr(0, end);
      commands_.erase(0, end + 1);
      if (line.starts_with("mark ")) mark(line.substr(5));
      if (line == "finish") finishing_ = true;
    }
  }

  void mark(const std::string& next) {
    for (const auto& one : held_) one->close_window(now(), seen_);
    seen_.print();
    seen_ = window{.name = next};
  }

  bool is_done() const {
    for (const auto& one : held_)
      if (!one->is_done()) return false;
    return fresh_.empty();
  }

  std::uint16_t port_;
  load wanted_;
  poller poller_;
  window seen_;
  std::list<std::unique_ptr<lane>> held_;
  std::list<std::unique_ptr<lane>> fresh_;
  std::uint64_t last_id_ = 0;
  std::int64_t next_fresh_ = now() + 1'000'000'000;
  std::int64_t next_reopen_ = 0;
  std::string commands_;
  bool finishing_ = false;
};

}  // namespace

int run_load(std::uint16_t port, const load& wanted) {
  return client(port, wanted).run();
}

}  // namespace traffic
