#pragma once

#include "net/endpoint.hpp"

#include <boost/system/result.hpp>

#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace kubelane::net {

/// What a socket of the data path is registered for, once.
inline constexpr std::uint32_t edge_events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

// Small tools over the socket calls. Each takes a descriptor and owns nothing.

/// An endpoint as the kernel takes it.
struct socket_address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};
socket_address to_address(const endpoint& value);
/// Nothing for what is neither IPv4 nor IPv6.
std::optional<endpoint> to_endpoint(const sockaddr_storage& storage);
/// The address of the other side, and of this one; nothing if there is none (any more).
std::optional<endpoint> peer_of(int fd);
std::optional<endpoint> local_of(int fd);

/// A TCP socket, non-blocking and close-on-exec, of the endpoint's family; -1 with errno.
int open_tcp(const endpoint& towards);
/// TCP_NODELAY; also inherited by what a listener accepts.
void send_at_once(int fd);
/// TCP_NOTSENT_LOWAT: the kernel takes no more than 128 KiB beyond what it may send now. What it
/// has taken is sent whenever the peer reads, all at once, and whoever else is on that core waits.
void keep_queue_short(int fd);

struct keep_alive {
  std::chrono::seconds idle;
  std::chrono::seconds interval;
  int count;
};
/// TCP keep-alive; also inherited by what a listener accepts.
void keep_alive_on(int fd, const keep_alive& how);

/// Takes the pending error off the socket, which reports each only once; 0 if there is none.
int take_error(int fd);
/// Bytes (and FIN) handed to the kernel that the peer's kernel has not acknowledged.
std::size_t unacknowledged_bytes(int fd);

/// Tells what is behind a descriptor apart, for as long as it is open somewhere; 0 for none.
std::uint64_t inode_of(int fd);

/// Bytes received that nobody has read.
std::size_t unread_bytes(int fd);
/// Throws away what was received, within reason. True if the peer has ended (or there was an
/// error).
bool discard_unread(int fd);

/// Ends the connection with a reset, even if another process holds the descriptor too. What was not
/// sent yet is lost. The descriptor stays open. Where the peer expects nothing any more (closed
/// both ways), nothing is sent.
void reset(int fd);

}  // namespace kubelane::net
