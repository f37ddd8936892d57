#include "lane.hpp"

namespace traffic {
namespace {

constexpr std::int64_t ping_every = 100'000'000;

kind kind_of(lane::role what) {
  switch (what) {
    case lane::role::stream:
      return kind::stream;
    case lane::role::answers:
      return kind::answer;
    case lane::role::pinger:
    case lane::role::silent:
    case lane::role::fresh:
      return kind::ping;
  }
  return kind::ping;
}

template <class T>
bool send_whole(int fd, const T& value) {
  return ::send(fd, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value);
}

}  // namespace

lane::lane(role what, std::uint64_t id, std::uint16_t port, const poller& where)
    : role_(what),
      id_(id),
      poller_(where),
      fd_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  if (fd_ < 0) die("socket");
  set_no_delay(fd_);
  poller_.add(fd_, EPOLLIN | EPOLLOUT, this);
  const auto to = loopback(1, port);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ||
      errno == EINPROGRESS)
    return;
  state_ = errno == ECONNREFUSED ? state::refused : state::lost;
}

lane::~lane() {
  ::close(fd_);
}

void lane::on_events(std::uint32_t events, window& seen) {
  if (state_ == state::connecting) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return end(error == ECONNREFUSED ? state::refused : state::lost, seen);
    if ((events & EPOLLOUT) == 0) return;
    greet(seen);
  }
  if (state_ == state::open && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !receive(seen))
    return;
  if (state_ == state::open && role_ == role::stream && !finishing_ && (events & EPOLLOUT) != 0)
    send_stream(seen);
}

void lane::greet(window& seen) {
  state_ = state::open;
  last_bytes_ = now();
  if (role_ != role::stream) poller_.modify(fd_, EPOLLIN, this);
  bool sent = send_whole(fd_, greeting{.id = id_, .what = kind_of(role_)});
  if (role_ == role::answers) sent = sent && ask();
  // Its connect is part of a fresh connection's way.
  if (role_ == role::fresh) sent = sent && send_ping(opened_);
  if (role_ == role::silent) sent = sent && send_ping(now());
  if (!sent) end(state::lost, seen);
  next_ping_ = now() + static_cast<std::int64_t>(id_ * 7'000'003 % ping_every);
}

void lane::tick(std::int64_t at, window& seen) {
  if (role_ != role::pinger || state_ != state::open || finishing_ || at < next_ping_) return;
  const auto due = next_ping_;
  next_ping_ += ping_every;
  if (!send_ping(due)) end(state::lost, seen);
}

bool lane::send_ping(std::int64_t intended) {
  awaited_.push_back({++number_, intended});
  return send_whole(fd_, awaited_.back());
}

bool lane::ask() {
  return send_whole(fd_, request{++number_});
}

bool lane::receive(window& seen) {
  static std::vector<std::byte> buffer(turn);
  std::span<const std::byte> bytes;
  switch (read_some(fd_, buffer, bytes)) {
    case outcome::moved:
      take(bytes, seen);
      return state_ == state::open;
    case outcome::blocked:
      return true;
    case outcome::ended:
      end(role_ == role::stream && finishing_ ? state::finished : state::lost, seen);
      return false;
    case outcome::failed:
      end(state::lost, seen);
      return false;
  }
  return false;
}

void lane::take(std::span<const std::byte> bytes, window& seen) {
  if (role_ != role::stream && role_ != role::answers) return take_pong(bytes, seen);
  const auto at = now();
  seen.stream_gap = std::max(seen.stream_gap, at - last_bytes_);
  last_bytes_ = at;
  seen.bytes += bytes.size();
  if (role_ == role::answers) return take_answer(bytes, seen);
  const auto wrong_before = received_.wrong;
  received_.take(downwards(id_), bytes);
  seen.wrong += received_.wrong - wrong_before;
}

void lane::take_answer(std::span<const std::byte> bytes, window& seen) {
  const auto wrong_before = received_.wrong;
  received_.take(of_answer(id_, number_), bytes);
  seen.wrong += received_.wrong - wrong_before;
  if (received_.count < answer_size) return;
  seen.wrong += received_.count - answer_size;  // more than was asked for
  ++seen.answers;
  received_ = {};
  if (!finishing_ && !ask()) end(state::lost, seen);
}

void lane::take_pong(std::span<const std::byte> bytes, window& seen) {
  partial_.insert(partial_.end(), bytes.begin(), bytes.end());
  while (partial_.size() >= sizeof(ping)) {
    ping came;
    std::memcpy(&came, partial_.data(), sizeof came);
    partial_.erase(partial_.begin(), partial_.begin() + sizeof came);
    const bool expected = !awaited_.empty() && awaited_.front().number == came.number &&
                          awaited_.front().intended == came.intended;
    if (!expected) {
      seen.wrong += sizeof came;
      continue;
    }
    awaited_.pop_front();
    const auto way = now() - came.intended;
    if (role_ == role::fresh) {
      seen.slowest_fresh = std::max(seen.slowest_fresh, way);
      return end(state::finished, seen);
    }
    ++seen.pongs;
    seen.stall = std::max(seen.stall, way);
  }
}

bool lane::send_stream(window& seen) {
  const auto before = sent_;
  if (send_some(fd_, upwards(id_), sent_, turn) == outcome::failed) {
    end(state::lost, seen);
    return false;
  }
  seen.bytes += sent_ - before;
  return true;
}

void lane::finish(window& seen) {
  finishing_ = true;
  if (state_ != state::open) return;
  if (role_ == role::silent && !send_ping(now())) return end(state::lost, seen);
  if (role_ != role::stream) return;
  poller_.modify(fd_, EPOLLIN, this);
  ::shutdown(fd_, SHUT_WR);
}

bool lane::is_done() const noexcept {
  if (state_ != state::open) return true;
  if (role_ == role::answers) return received_.count == 0;
  return role_ != role::stream && awaited_.empty();
}

void lane::close_window(std::int64_t at, window& seen) const {
  if (state_ != state::open) return;
  if (role_ == role::stream || role_ == role::answers)
    seen.stream_gap = std::max(seen.stream_gap, at - last_bytes_);
  if (role_ == role::fresh || awaited_.empty()) return;
  seen.stall = std::max(seen.stall, at - awaited_.front().intended);
  ++seen.waiting;
}

void lane::print_stream() const {
  std::printf("{\"stream\":%llu,\"sent\":%llu,\"received\":%llu,\"wrong\":%llu,\"ended\":%s}\n",
              static_cast<unsigned long long>(id_), static_cast<unsigned long long>(sent_),
              static_cast<unsigned long long>(received_.count),
              static_cast<unsigned long long>(received_.wrong),
              state_ == state::finished ? "true" : "false");
}

void lane::end(state how, window& seen) {
  const bool was_established = state_ == state::open;
  state_ = how;
  ::close(fd_);
  fd_ = -1;
  if (how == state::lost && was_established && role_ != role::fresh) seen.lose();
}

}  // namespace traffic
