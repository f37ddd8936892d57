#include "proxy/admission.hpp"

#include "net/socket.hpp"
#include "net/socket_owner.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace kubelane::proxy {
namespace {

constexpr milliseconds view_age{100};
constexpr std::chrono::seconds say_again{10};
constexpr int largest_reserve = 64;

bool is_roots(int client) {
  const auto here = net::local_of(client);
  const auto there = net::peer_of(client);
  return here && there && net::owner_of(*there, *here) == 0U;
}

}  // namespace

const char* turned_away_because(int client, bool client_is_local, std::size_t connections,
                                std::size_t limit) {
  if (connections >= limit) return "limit";
  if (connections < limit - limit / 10) return nullptr;
  return client_is_local && is_roots(client) ? nullptr : "reserved";
}

bool rate_limit::take(time_point now) {
  const std::chrono::duration<double> passed = now - refilled_;
  left_ = std::min(a_second_ / 10, left_ + passed.count() * a_second_);
  refilled_ = now;
  if (left_ < 1) return false;
  left_ -= 1;
  return true;
}

const pool_view& pool_view::look(time_point now) {
  if (seen_ != time_point{} && now - seen_ < view_age) return *this;
  const auto status = pool_.status(now);
  seen_ = now;
  all_down_ = status.all_down;
  bool any = false;
  all_slow_ = true;
  for (const auto& each : status.upstreams) {
    if (each.removed || !each.address) continue;
    any = true;
    all_slow_ = all_slow_ && each.state == health::state::slow;
  }
  all_slow_ = all_slow_ && any;
  return *this;
}

void descriptor_guard::read_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const auto number = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 30));
  first_reserved_ = number - std::min(largest_reserve, number / 4);
}

int descriptor_guard::left(int any_fd) const {
  const int first = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
  if (first < 0) return 0;
  const int second = fcntl(any_fd, F_DUPFD_CLOEXEC, 0);
  close(first);
  if (second < 0) return 0;
  close(second);
  return first_reserved_ - second;
}

void problem_log::say(const char* kind, const std::string& words, time_point now,
                      const std::function<void(const std::string&)>& to) {
  const auto [last, is_new] = said_.try_emplace(kind, now);
  if (!is_new && now - last->second < say_again) return;
  last->second = now;
  to(words);
}

}  // namespace kubelane::proxy
