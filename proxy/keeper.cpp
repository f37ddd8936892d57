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
      most_(most),
      loop_(loop),
      retry_(
          loop, [](void* self) { static_cast<keeper*>(self)->say_all(); }, this),
      tokens_(burst) {}

keeper::~keeper() {
  for (const auto& each : unsaid_)
    if (each.what == message::kind::store_and_close) ::close(each.descriptor);
}

std::size_t keeper::limit_from_environment() {
  const char* const text = std::getenv("FDSTORE");
  if (text == nullptr) return unit_limit;
  return std::strtoul(text, nullptr, 10);
}

void keeper::open(std::optional<kept_table>& inherited) {
  if (!manager_.present() || capacity() == 0) return;
  if (inherited) {
    table_.emplace(std::move(*inherited));
    inherited.reset();
  } else {
    if (auto created = kept_table::create()) table_.emplace(std::move(*created));
    if (!table_) return;
    forget(kept_table::stored_as);  // of a layout that this version does not know
    say({message::kind::store, kept_table::stored_as, table_->descriptor()});
  }
  active_ = true;
}

// A pipe whose writing end is in the store alone: it hangs up when the store drops it, or never
// took it.
void keeper::watch_over_it() {
  std::array<int, 2> ends{};
  if (!active_ || pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return;
  say({message::kind::store_and_close, canary_name, ends[1]});
  const auto on_event = [](void* self, std::uint32_t events) {
    if ((events & EPOLLHUP) == 0) return;
    auto& it = *static_cast<keeper*>(self);
    it.active_ = false;
    it.canary_.close();
  };
  canary_ = loop_.watch(ends[0], EPOLLIN | EPOLLET, on_event, this);
}

bool keeper::keep_listener(int fd) {
  if (!active_) return false;
  std::string name;
  for (int number = 0; name.empty(); ++number) {
    auto candidate = listener_prefix + std::to_string(number);
    const auto& used = names_in_use_;
    if (std::find(used.begin(), used.end(), candidate) == used.end()) name = std::move(candidate);
  }
  names_in_use_.push_back(name);
  listeners_.push_back(name);
  say({message::kind::store, std::move(name), fd});
  return true;
}

bool keeper::is_listener_name(const std::string& name) {
  return name.size() > 1 && name.front() == listener_prefix &&
         std::all_of(name.begin() + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

void keeper::forget_listeners() {
  for (const auto& name : std::exchange(listeners_, {})) forget(name);
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

// Never before what is still to be said: the same descriptors may be about to leave the store,
// which does not take twice what it holds.
bool keeper::store(kept_record& record, std::span<const int> descriptors) {
  if (!say_all()) return false;
  table_->publish(record);
  if (!manager_.store(record.name(), descriptors)) {
    table_->remove(record);
    return false;
  }
  ++connections_;
  return true;
}

void keeper::forget(kept_record& record) {
  --connections_;
  ++leaving_;
  say({message::kind::forget, record.name(), -1, &record});
}

void keeper::forget(const std::string& name) {
  ++leaving_;
  say({message::kind::forget, name});
}

void keeper::say(message next) {
  unsaid_.push_back(std::move(next));
  say_all();
}

// True if nothing is left to be said. A record stays until the manager was told: until then the
// next process finds the descriptors, and has to know that they are over.
bool keeper::say_all() {
  while (!unsaid_.empty()) {
    const auto& next = unsaid_.front();
    const bool stores = next.what != message::kind::forget;
    const bool said = stores ? manager_.store(next.name, std::span(&next.descriptor, 1))
                             : manager_.forget(next.name);
    if (!said && manager_.present()) {
      if (!retry_.armed()) retry_.arm(loop_.now() + retry_period);
      return false;
    }
    if (next.what == message::kind::store_and_close) ::close(next.descriptor);
    if (next.record != nullptr) table_->remove(*next.record);
    if (!stores) --leaving_;
    unsaid_.pop_front();
  }
  return true;
}

void keeper::settle(milliseconds limit) {
  const auto end = net::clock::now() + limit;
  while (!say_all() && net::clock::now() < end) std::this_thread::sleep_for(1ms);
  const auto left = std::chrono::duration_cast<milliseconds>(end - net::clock::now());
  if (left > 0ms) manager_.barrier(left);
}

}  // namespace kubelane::proxy
