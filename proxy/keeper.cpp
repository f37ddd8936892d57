#include "proxy/keeper.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr char table_name[] = "connections";
constexpr char canary_name[] = "canary";
constexpr char listener_prefix = 'l';
constexpr std::size_t unit_limit = 2048;  // FileDescriptorStoreMax= of systemd/kubelane.service
constexpr std::size_t a_connection = 4;   // descriptors
constexpr std::size_t headroom = 16;      // for listeners, the table and the canary
constexpr double stores_a_second = 20;
constexpr double burst = 4;
constexpr auto retry_period = 20ms;

}  // namespace

keeper::keeper(net::reactor& loop, const systemd::notifier& manager, std::size_t most)
    : manager_(manager),
      loop_(loop),
      most_(most),
      retry_(
          loop, [](void* self) { static_cast<keeper*>(self)->send_removals(); }, this),
      tokens_(burst) {}

std::size_t keeper::limit_from_environment() {
  const char* const text = std::getenv("FDSTORE");
  if (text == nullptr) return unit_limit;
  return std::strtoul(text, nullptr, 10);
}

void keeper::open(std::optional<kept_table> inherited) {
  if (!manager_.present() || most_ <= headroom) return;
  if (inherited) {
    table_.emplace(std::move(*inherited));
  } else {
    if (auto created = kept_table::create()) table_.emplace(std::move(*created));
    if (!table_) return;
    manager_.forget(table_name);  // of a layout that this version does not know
    const int descriptor = table_->descriptor();
    if (!manager_.store(table_name, std::span(&descriptor, 1))) return;
  }
  active_ = true;
  look_whether_it_holds();
}

// A pipe whose writing end is in the store alone: it hangs up when the store drops it, or never
// took it.
void keeper::look_whether_it_holds() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return;
  manager_.forget(canary_name);  // of the process before
  const bool sent = manager_.store(canary_name, std::span(&ends[1], 1));
  ::close(ends[1]);
  if (!sent) {
    ::close(ends[0]);
    return;
  }
  const auto on_event = [](void* self, std::uint32_t events) {
    if ((events & EPOLLHUP) == 0) return;
    auto& it = *static_cast<keeper*>(self);
    it.active_ = false;
    it.canary_.close();
  };
  canary_ = loop_.watch(ends[0], EPOLLIN | EPOLLET, on_event, this);
}

void keeper::keep_listener(int fd) {
  if (!active_) return;
  std::string name;
  do name = listener_prefix + std::to_string(listeners_++);
  while (std::find(listener_names_.begin(), listener_names_.end(), name) != listener_names_.end());
  if (manager_.store(name, std::span(&fd, 1))) listener_names_.push_back(std::move(name));
}

void keeper::adopted_listener(const std::string& name) {
  listener_names_.push_back(name);
}

std::size_t keeper::capacity() const noexcept {
  if (most_ <= headroom) return 0;
  return std::min((most_ - headroom) / a_connection, kept_table::places);
}

kept_record* keeper::add(pace how) {
  if (!active_ || is_full()) return nullptr;
  if (how == pace::limited) {
    const std::chrono::duration<double> passed =
        loop_.now() - std::exchange(refilled_, loop_.now());
    tokens_ = std::min(burst, tokens_ + passed.count() * stores_a_second);
    if (tokens_ < 1) return nullptr;
    tokens_ -= 1;
  }
  return table_->add();
}

bool keeper::store(kept_record& record, std::span<const int> descriptors) {
  table_->publish(record);
  if (!manager_.store(record.name(), descriptors)) {
    table_->remove(record);
    return false;
  }
  ++connections_;
  return true;
}

void keeper::adopted(const kept_record&) {
  ++connections_;
}

void keeper::forget(kept_record& record) {
  const auto name = record.name();
  table_->remove(record);
  --connections_;
  forget(name);
}

void keeper::forget(const std::string& name) {
  if (manager_.forget(name)) return;
  removals_.push_back(name);
  if (!retry_.armed()) retry_.arm(loop_.now() + retry_period);
}

void keeper::send_removals() {
  while (!removals_.empty() && manager_.forget(removals_.back())) removals_.pop_back();
  if (!removals_.empty()) retry_.arm(loop_.now() + retry_period);
}

void keeper::settle(milliseconds limit) {
  const auto end = net::clock::now() + limit;
  send_removals();
  while (!removals_.empty() && net::clock::now() < end) {
    std::this_thread::sleep_for(1ms);
    send_removals();
  }
  const auto left = std::chrono::duration_cast<milliseconds>(end - net::clock::now());
  if (left > 0ms) manager_.barrier(left);
}

}  // namespace kubelane::proxy
