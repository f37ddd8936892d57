// Connections that outlive this process.

#include "net/socket.hpp"
#include "proxy/data_path_impl.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto hand_over_limit = 1s;  // for a manager that does not listen right now: better late

void ignore(void*, std::uint32_t) {}

}  // namespace

void data_path::keep_in(keeper& store) {
  impl_->store = &store;
}

void data_path::adopt(const inherited_connection& connection, std::optional<upstream_id> upstream) {
  impl_->adopt(connection, upstream);
}

void data_path::hand_over() {
  impl_->hand_over();
}

/// True if it is in the store now.
bool data_path::impl::keep(relay& living, keeper::pace how) {
  auto* const record = store->add(how);
  if (record == nullptr) return false;
  const auto upstream = address_of(living.upstream());
  const auto everything = living.descriptors_to_keep();
  if (!upstream || !everything) return false;
  record->set_upstream(*upstream);
  living.describe(*record);
  if (!store->store(*record, *everything)) return false;
  living.kept_as(*record);
  return true;
}

std::optional<net::endpoint> data_path::impl::address_of(upstream_id id) const {
  const auto known = pool.status(loop.now()).upstreams;
  const auto found = std::find_if(known.begin(), known.end(),
                                  [id](const upstream_status& each) { return each.id == id; });
  return found == known.end() ? std::nullopt : found->address;
}

void data_path::impl::hand_over() {
  const auto limit = net::clock::now() + hand_over_limit;
  while (!sessions.empty()) hand_over_client(sessions.front(), limit);
  for (auto next = relays.begin(); next != relays.end();) {
    relay& each = *next++;  // what is ended leaves the list
    const bool kept =
        each.record() != nullptr || until(limit, [&] { return keep(each, keeper::pace::urgent); });
    // Without a word the kernel would say that both sides have ended in order.
    if (!kept) each.abort(end_reason::shutdown);
  }
}

/// Tries again while the manager does not listen, but not for ever.
template <typename Attempt>
bool data_path::impl::until(time_point limit, const Attempt& attempt) {
  while (!attempt()) {
    if (store->is_full() || net::clock::now() >= limit) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

bool data_path::impl::keep_client(int client, bool is_remote) {
  auto* const record = store->add(keeper::pace::urgent);
  if (record == nullptr) return false;
  record->client = net::inode_of(client);
  if (is_remote) record->set(kept_record::remote_client);
  return store->store(*record, std::span(&client, 1));
}

void data_path::impl::hand_over_client(session& dialling, time_point limit) {
  const bool is_remote = dialling.client_is_remote();
  const auto client = dialling.hand_over();
  if (!client) return;  // it has a server now
  if (!until(limit, [&] { return keep_client(*client, is_remote); })) net::reset(*client);
  close(*client);
}

void data_path::impl::adopt(const inherited_connection& connection,
                            std::optional<upstream_id> upstream) {
  auto& record = *connection.record;
  const bool is_remote = record.has(kept_record::remote_client);
  store->count_adopted();
  auto client = loop.watch(connection.client, net::edge_events, ignore, nullptr);
  if (client) client.has(net::watched_fd::copies::end_with_it);
  if (connection.server < 0) {  // one descriptor alone: it is held here now
    store->forget(record);
    if (client) begin_session(std::move(client), is_remote);
    return;
  }
  auto server = loop.watch(connection.server, net::edge_events, ignore, nullptr);
  if (server) server.has(net::watched_fd::copies::end_with_it);
  if (!client || !server || !upstream) {
    record.set(kept_record::aborted);
    if (client) net::reset(client.fd());
    if (server) net::reset(server.fd());
    for (const int pipe : {connection.up, connection.down}) close(pipe);
    store->forget(record);
    return;
  }
  relay::beginning from;
  from.share = std::make_unique<traffic>(ledger, *upstream);
  from.accepted = time_point(std::chrono::nanoseconds(record.accepted));
  from.client_is_remote = is_remote;
  from.client_seen.fd = client.fd();
  from.server_seen.fd = server.fd();
  from.client = std::move(client);
  from.server = std::move(server);
  begin(new relay(relay_seam, std::move(from), {&record, connection.up, connection.down}));
}

}  // namespace kubelane::proxy
