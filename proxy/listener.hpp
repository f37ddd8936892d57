#pragma once

#include "net/endpoint.hpp"
#include "net/reactor.hpp"

#include <boost/system/result.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace kubelane::proxy {

/// Opens, binds and listens; the error says what failed (`address_in_use`, `permission_denied`,
/// `address_not_available`, ...). A loopback address is bound to the device `lo` too, so that a
/// neighbour cannot reach it where `route_localnet` is on. IPv6 listeners take IPv6 alone.
boost::system::result<int> open_listener(const net::endpoint& where);

/// What became of several addresses, in their order.
struct opened_together {
  std::vector<boost::system::result<int>> sockets;
  /// Another process holds this one; then none is open, and none has accepted anybody meanwhile.
  std::optional<net::endpoint> busy;
};

/// Opens several as `open_listener` does, but all or none if one is in use.
opened_together open_together(const std::vector<net::endpoint>& addresses);

/// One listening socket: accepts for as long as it lives, unless paused.
class listener {
 public:
  struct seam {
    void* owner;
    /// Another client is welcome; if not, the callee pauses.
    bool (*may_accept)(void* owner);
    /// A client, non-blocking; the callee owns the descriptor.
    void (*accepted)(void* owner, int client, const listener& from);
    /// No descriptor or memory for a client, which still waits. The callee pauses.
    void (*cannot_accept)(void* owner, int error);
  };

  /// Takes the descriptor over, which may come from another process. Options that its clients
  /// inherit are set here.
  listener(net::reactor& loop, int listening, net::watched_fd::copies elsewhere, const seam& to);

  void pause();
  void resume();
  /// Accepts who has connected already: closing would reset them.
  void accept_waiting();
  int fd() const noexcept { return socket_.fd(); }
  /// Its clients are on this host.
  bool is_loopback() const noexcept { return is_loopback_; }
  const net::endpoint& address() const noexcept { return address_; }

 private:
  static void on_event(void* self, std::uint32_t events);
  void accept_some();

  net::reactor& loop_;
  seam to_;
  net::endpoint address_;
  net::watched_fd socket_;
  bool is_loopback_;
  bool paused_ = false;
  int burst_ = 1;                  // clients that are accepted a turn
  std::uint64_t filled_turn_ = 0;  // when there were at least as many
};

}  // namespace kubelane::proxy
