// What outlives the process: listeners and connections in the service manager's store, and the last
// good configuration.

#include "config/last_good.hpp"
#include "net/host_addresses.hpp"
#include "proxy/server_impl.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto barrier_limit = 100ms;
constexpr auto status_period = 5s;

bool is_address(const std::string& host) {
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

std::optional<upstream_id> find_upstream(const pool_status& in, const net::endpoint& address) {
  for (const auto& each : in.upstreams)
    if (each.address == address) return each.id;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> server::impl::open(inheritance from_before) {
  for (const auto& each : from_before.rest) proxy::end(each, notifier);
  if (from_before.lost > 0)
    log.warn("connections of the process before could not be carried on: ended",
             {{"connections", std::to_string(from_before.lost)}});
  store.open(std::move(from_before.table));
  if (store.is_active()) relays.keep_in(store);
  inherited = std::move(from_before.connections);
  for (const auto& each : inherited) {
    const auto address = each.record->upstream();
    auto& known = inherited_upstreams;
    if (address && std::find(known.begin(), known.end(), *address) == known.end())
      known.push_back(*address);
  }
  for (const auto& each : settings.upstreams)
    if (!is_address(each.address.host)) unanswered_names.insert(each.address.host);
  auto failure = open_listeners(std::move(from_before.listeners));
  if (failure) {
    inheritance unwanted;
    unwanted.connections = std::move(inherited);
    end_all(std::move(unwanted), notifier);
  }
  return failure;
}

std::optional<std::string> server::impl::open_listeners(
    std::vector<inherited_listener> from_before) {
  std::optional<std::string> failure;
  for (const auto& address : settings.listen) {
    const auto found =
        std::find_if(from_before.begin(), from_before.end(),
                     [&](const inherited_listener& each) { return each.address == address; });
    if (found != from_before.end()) {
      store.adopted_listener(found->name);
      relays.listen(found->fd);
      from_before.erase(found);
      continue;
    }
    std::string words;
    if (!failure && !listen_on(address, words)) failure = words;
  }
  for (const auto& each : from_before) {
    log.info("no longer listening", {{"address", net::to_string(each.address)}});
    proxy::end({each.fd, each.name}, notifier);
  }
  return failure;
}

void server::impl::adopt_connections() {
  const auto known = pool.status(reactor.now());
  for (const auto& each : std::exchange(inherited, {})) {
    const auto address = each.record->upstream();
    relays.adopt(each, address ? find_upstream(known, *address) : std::nullopt);
    metrics.restored_connection();
  }
  const auto count = relays.connections();
  if (count > 0) log.info("carrying connections on", {{"connections", std::to_string(count)}});
  // Those that nobody wants any more leave, but not before it is known who is wanted.
  if (unanswered_names.empty() && !std::exchange(inherited_upstreams, {}).empty()) reconcile({});
}

void server::impl::add_inherited(std::vector<wanted_upstream>& wanted) {
  for (const auto& address : inherited_upstreams) {
    const bool is_wanted =
        std::any_of(wanted.begin(), wanted.end(),
                    [&](const wanted_upstream& each) { return each.address == address; });
    if (!is_wanted)
      wanted.push_back({net::to_string(address), address, "", health::membership::leaving});
  }
}

void server::impl::note_lookup(const std::string& host) {
  unanswered_names.erase(host);
  if (unanswered_names.empty()) inherited_upstreams.clear();
}

void server::impl::hand_over() {
  notifier.stopping("leaving connections to the next process");
  log.info("handing over", {{"connections", std::to_string(relays.connections())}});
  relays.hand_over();
  store.settle(barrier_limit);
  outcome = end::handed_over;
  reactor.stop();
}

void server::impl::watch_store() {
  metrics.stored_connections(store.connections());
  const auto used = store.connections() * 10;
  const bool nearly_full = store.is_active() && used >= store.capacity() * 8;
  if (nearly_full && !store_is_nearly_full)
    log.warn(
        "the descriptor store is nearly full: more connections work, but end with this process",
        {{"stored", std::to_string(store.connections())},
         {"room", std::to_string(store.capacity())}});
  if (nearly_full || used < store.capacity() * 7) store_is_nearly_full = nearly_full;
}

// For `systemctl status`.
void server::impl::tell_status(time_point now) {
  if (stopping || now - last_status < status_period) return;
  last_status = now;
  std::size_t usable = 0;
  const auto known = pool.status(now).upstreams;
  for (const auto& each : known) usable += each.tier >= 1 && each.tier <= 3 ? 1 : 0;
  auto text = std::to_string(usable) + " of " + std::to_string(known.size()) +
              " API servers usable, " + std::to_string(relays.connections()) + " connections, " +
              std::to_string(store.connections()) + " of them kept over a restart";
  if (text == told_status) return;
  told_status = std::move(text);
  notifier.send("STATUS=" + told_status);
}

void server::impl::note_configuration(const std::string& text) {
  if (options.state_folder.empty() || text.empty() ||
      config::save_last_good(options.state_folder, text))
    return;
  log.warn(
      "cannot keep a copy of the configuration",
      {{"file", config::last_good_path(options.state_folder)}, {"cause", std::strerror(errno)}});
}

}  // namespace kubelane::proxy
