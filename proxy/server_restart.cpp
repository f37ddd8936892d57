// What outlives the process: listeners and connections in the service manager's store, the last
// good configuration, and what state changes there were.

#include "config/last_good.hpp"
#include "net/host_addresses.hpp"
#include "proxy/server_impl.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto barrier_limit = 100ms;
constexpr auto status_period = 5s;
constexpr int answers_wanted = 3;  // of each DNS name, before an address counts as gone

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
  store.open(from_before.table);
  store_was_active = store.is_active();
  if (store.is_active())
    relays.keep_in(store);
  else
    give_up_connections(from_before);  // there is nowhere to keep them any longer
  release_unwanted(from_before);
  store.watch_over_it();
  const auto failure = open_listeners(std::move(from_before.listeners));
  if (failure) {
    relays.stop_accepting();
    store.forget_listeners();
    give_up_connections(from_before);
    release_unwanted(from_before);
    store.settle(barrier_limit);
    return failure;
  }
  inherited = std::move(from_before.connections);
  note_inherited_upstreams();
  return std::nullopt;
}

/// What nobody carries on leaves the store, and listeners that are not listened on any more, so
/// that their addresses are free for others.
void server::impl::release_unwanted(inheritance& in) {
  std::set<std::string> stale;
  std::erase_if(in.listeners, [&](const inherited_listener& each) {
    store.avoid_name(each.name);
    const auto& wanted = settings.listen;
    if (std::find(wanted.begin(), wanted.end(), each.address) != wanted.end()) return false;
    log.info("no longer listening", {{"address", net::to_string(each.address)}});
    in.rest.push_back({each.fd, each.name});
    return true;
  });
  for (const auto& each : std::exchange(in.rest, {})) {
    release(each);
    stale.insert(each.name);
  }
  for (const auto& each : in.connections) stale.erase(each.record->name());
  for (const auto& each : in.listeners) stale.erase(each.name);
  for (const auto& name : stale) store.forget(name);
  const auto lost = std::exchange(in.lost, 0);
  metrics.unrestored_connections(lost);
  if (lost > 0)
    log.warn("connections of the process before could not be carried on: ended",
             {{"connections", std::to_string(lost)}});
}

void server::impl::note_inherited_upstreams() {
  for (const auto& each : inherited) {
    const auto address = each.record->upstream();
    auto& known = inherited_upstreams;
    if (address && std::find(known.begin(), known.end(), *address) == known.end())
      known.push_back(*address);
  }
  for (const auto& each : settings.upstreams)
    if (!is_address(each.address.host)) unanswered_names[each.address.host] = answers_wanted;
}

/// A name that is new has no address yet. Until it was answered, those of before stay as a last
/// resort, so that a reload is no moment without any, nor a name server that is down.
void server::impl::keep_until_answered() {
  bool asks = false;
  for (const auto& each : settings.upstreams) {
    const auto& host = each.address.host;
    const auto has_host = [&](const known_address& known) { return known.host == host; };
    if (is_address(host) || std::any_of(known_addresses.begin(), known_addresses.end(), has_host))
      continue;
    unanswered_names.try_emplace(host, 1);
    asks = true;
  }
  if (!asks) return;
  auto& kept = inherited_upstreams;
  for (const auto& one : pool.status(reactor.now()).upstreams)
    if (one.address && !one.removed &&
        std::find(kept.begin(), kept.end(), *one.address) == kept.end())
      kept.push_back(*one.address);
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

// An address is gone after three answers without it, here as later.
void server::impl::note_lookup(const std::string& host) {
  const auto found = unanswered_names.find(host);
  if (found != unanswered_names.end() && --found->second == 0) unanswered_names.erase(found);
  if (unanswered_names.empty()) inherited_upstreams.clear();
}

void server::impl::hand_over() {
  notifier.stopping("leaving connections to the next process");
  log.info("handing over", {{"connections", std::to_string(relays.connections())}});
  relays.hand_over();
  store.settle(barrier_limit);
  how_it_ends = outcome::handed_over;
  reactor.stop();
}

void server::impl::watch_store() {
  metrics.stored_connections(store.connections(), store.is_active() ? store.capacity() : 0);
  if (std::exchange(store_was_active, store.is_active()) && !store.is_active())
    log.warn("the service manager keeps nothing for this process: connections end with it",
             {{"hint", "FileDescriptorStoreMax= of the unit"}});
  const auto used = store.connections() * 10;
  const bool nearly_full = store.is_active() && used >= store.capacity() * 8;
  if (nearly_full && !store_is_nearly_full)
    log.warn(
        "the descriptor store is nearly full: more connections work, but end with this process",
        {{"stored", std::to_string(store.connections())},
         {"room", std::to_string(store.capacity())}});
  if (nearly_full || used < store.capacity() * 7) store_is_nearly_full = nearly_full;
}

// Whoever waits for it waits for ever if it gets lost.
void server::impl::tell_ready() {
  owes_ready =
      notifier.present() && !notifier.ready(awaited_ports.empty() ? "serving" : describe_wait());
}

// For `systemctl status`.
void server::impl::tell_status(time_point now) {
  if (stopping || now - last_status < status_period) return;
  last_status = now;
  std::size_t usable = 0;
  const auto known = pool.status(now).upstreams;
  for (const auto& each : known) usable += each.tier >= 1 && each.tier <= 3 ? 1 : 0;
  auto text = (awaited_ports.empty() ? "" : describe_wait() + ", ") + std::to_string(usable) +
              " of " + std::to_string(known.size()) + " API servers usable, " +
              std::to_string(relays.connections()) + " connections, " +
              std::to_string(store.connections()) + " of them kept over a restart";
  if (text != told_status && notifier.send("STATUS=" + text)) told_status = std::move(text);
}

/// What the processes before have seen, and where what this one sees is kept.
void server::impl::recall_events() {
  if (options.state_folder.empty()) return;
  const auto path = events_path(options.state_folder);
  if (auto before = read_events(path)) events = std::move(*before);
  log.keep_in(std::make_unique<telemetry::line_file>(path, remembered_events));
}

void server::impl::watch_events() {
  const int failure = log.keeping_failed();
  if (std::exchange(events_are_kept, failure == 0) && failure != 0)
    log.warn("cannot keep state changes over a restart",
             {{"file", events_path(options.state_folder)}, {"cause", std::strerror(failure)}});
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
