#include "proxy/inheritance.hpp"

#include "net/socket.hpp"
#include "net/socket_facts.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <thread>
#include <utility>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t known_needs = 0;
constexpr auto forgetting_limit = 100ms;  // for a manager that does not listen

using descriptors = std::vector<int>;

bool has_option(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value != 0;
}

bool has_pending_error(int fd) {
  pollfd asked{fd, 0, 0};
  return poll(&asked, 1, 0) > 0 && (asked.revents & POLLERR) != 0;
}

// Takes the descriptor of that inode out of the list; -1 if it is not there or of another kind.
int take(descriptors& from, std::uint64_t inode, mode_t kind) {
  for (auto each = from.begin(); each != from.end(); ++each) {
    struct stat about {};
    if (fstat(*each, &about) != 0 || about.st_ino != inode || (about.st_mode & S_IFMT) != kind)
      continue;
    const int found = *each;
    from.erase(each);
    return found;
  }
  return -1;
}

// Everything that was read from `source` has either been given to `sink`'s kernel or is in the
// pipe, so that what was received beyond it is the FIN.
bool received_an_end(int source, int sink, int pipe) {
  const auto from = net::counts_of(source);
  const auto to = net::counts_of(sink);
  if (!from || !to) return false;
  return from->received == to->written + net::unread_bytes(pipe) + net::unread_bytes(source) + 1;
}

// The kernel tells an error once. If the process before was killed between hearing of it and
// writing it down, the socket looks like one that ended in order: closed, nothing more to read.
bool has_lost_its_error(const kept_record& record, int socket, int other, int pipe, bool was_told,
                        bool other_was_told) {
  const auto counts = net::counts_of(socket);
  if (!counts) return true;
  if (!counts->is_closed || has_pending_error(socket)) return false;
  if (!was_told) return true;  // a connection that we have not ended is closed by errors alone
  if (other_was_told || record.has(kept_record::leaving)) return false;  // its end was seen, or cut
  return record.has(kept_record::busy) && !received_an_end(socket, other, pipe);
}

void find_lost_errors(const inherited_connection& of) {
  auto& record = *of.record;
  const bool told_client = record.has(kept_record::told_client);
  const bool told_server = record.has(kept_record::told_server);
  const bool client =
      has_lost_its_error(record, of.client, of.server, of.up, told_client, told_server);
  const bool server =
      has_lost_its_error(record, of.server, of.client, of.down, told_server, told_client);
  if (client) record.set(kept_record::client_broken);
  if (server) record.set(kept_record::server_broken);
  record.clear(kept_record::busy);
}

bool may_go_on(const kept_record& record) {
  return (record.needs & ~known_needs) == 0 && !record.has(kept_record::ended) &&
         !record.has(kept_record::aborted);
}

// Nothing if it is not whole; what was taken is put back then.
std::optional<inherited_connection> assemble(kept_record& record, descriptors& from) {
  const auto given = from;
  inherited_connection result{&record, take(from, record.client, S_IFSOCK)};
  bool whole = result.client >= 0;
  if (record.port != 0) {
    result.server = take(from, record.server, S_IFSOCK);
    result.up = take(from, record.up, S_IFIFO);
    result.down = take(from, record.down, S_IFIFO);
    whole = whole && result.server >= 0 && result.up >= 0 && result.down >= 0 && record.upstream();
  }
  if (whole && may_go_on(record)) return result;
  from = given;
  return std::nullopt;
}

void put(inheritance& into, const std::string& name, descriptors given) {
  kept_record* const record = into.table ? into.table->find(name) : nullptr;
  if (record != nullptr) {
    if (const auto connection = assemble(*record, given)) {
      if (connection->server >= 0) find_lost_errors(*connection);
      into.connections.push_back(*connection);
    } else {
      into.lost += record->has(kept_record::ended) ? 0 : 1;
    }
  }
  const bool is_over =
      record != nullptr && record->has(kept_record::ended) && !record->has(kept_record::aborted);
  for (const int fd : given) {
    const auto address = has_option(fd, SO_ACCEPTCONN) ? net::local_of(fd) : std::nullopt;
    if (address)
      into.listeners.push_back({fd, name, *address});
    else
      into.rest.push_back({fd, name, is_over});
  }
}

}  // namespace

inheritance sort_out(std::vector<systemd::passed_descriptor> passed) {
  inheritance result;
  std::map<std::string, descriptors> by_name;
  for (auto& each : passed) by_name[each.name].push_back(each.fd);
  if (const auto found = by_name.find(kept_table::stored_as); found != by_name.end()) {
    for (const int fd : found->second) {
      auto table = kept_table::open(fd);
      if (table && !result.table) result.table.emplace(std::move(*table));
    }
    by_name.erase(found);
  }
  for (auto& [name, given] : by_name) put(result, name, std::move(given));
  if (result.table) {
    std::vector<const kept_record*> used;
    for (const auto& each : result.connections) used.push_back(each.record);
    result.table->remove_all_but(used);
  }
  return result;
}

void give_up_connections(inheritance& of) {
  for (const auto& each : of.connections) {
    each.record->set(kept_record::aborted);
    for (const int fd : {each.client, each.server, each.up, each.down})
      if (fd >= 0) of.rest.push_back({fd, each.record->name()});
  }
  of.lost += of.connections.size();
  of.connections.clear();
  if (of.table) of.table->remove_all_but({});
}

void release(const unwanted_descriptor& unwanted) {
  struct stat about {};
  const bool is_socket = fstat(unwanted.fd, &about) == 0 && S_ISSOCK(about.st_mode);
  if (is_socket && unwanted.is_over) shutdown(unwanted.fd, SHUT_RDWR);
  if (is_socket && !unwanted.is_over) net::reset(unwanted.fd);
  close(unwanted.fd);
}

void release_all(inheritance&& unwanted, const systemd::notifier& manager) {
  std::set<std::string> names = {kept_table::stored_as};
  give_up_connections(unwanted);
  for (const auto& each : unwanted.listeners) unwanted.rest.push_back({each.fd, each.name});
  for (const auto& each : unwanted.rest) {
    release(each);
    names.insert(each.name);
  }
  const auto end = std::chrono::steady_clock::now() + forgetting_limit;
  for (const auto& name : names)
    while (!manager.forget(name) && manager.present() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(1ms);
}

}  // namespace kubelane::proxy
