#pragma once

#include "net/endpoint.hpp"
#include "proxy/kept_table.hpp"
#include "systemd/notify.hpp"
#include "systemd/passed.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::proxy {

/// A connection of the process before, whole.
struct inherited_connection {
  kept_record* record;
  int client;
  int server = -1;  ///< -1, and no pipes: it had no server yet
  int up = -1;
  int down = -1;
};

/// A descriptor that nobody carries on.
struct unwanted_descriptor {
  int fd;
  std::string name;
  bool is_over =
      false;  ///< of a connection that has ended in order: its last bytes are on their way
};

struct inherited_listener {
  int fd;
  std::string name;
  net::endpoint address;
};

/// What the process before has left in the service manager's store, sorted out. Every descriptor is
/// in exactly one place, to be adopted or ended: one that is neither keeps a client waiting for
/// ever.
struct inheritance {
  std::optional<kept_table> table;  ///< its records are those of `connections`, no others
  std::vector<inherited_connection> connections;
  std::vector<inherited_listener> listeners;
  /// Neither: unknown names (a newer version's), incomplete ones, and those that were over.
  std::vector<unwanted_descriptor> rest;
  std::size_t lost = 0;  ///< connections among the rest that a client may still wait on
};

/// Sorts what was passed, and finds out what the records do not say: a connection whose error the
/// process before took off its socket without writing it down is broken.
inheritance sort_out(std::vector<systemd::passed_descriptor> passed);

/// Its connections are not to be carried on: they are among the rest, to be ended.
void give_up_connections(inheritance& of);

/// Ends one and closes it: a reset for a connection, unless it is over. The store still has it.
void release(const unwanted_descriptor& unwanted);
/// Ends everything and empties the store: this process will not serve.
void release_all(inheritance&& unwanted, const systemd::notifier& manager);

}  // namespace kubelane::proxy
