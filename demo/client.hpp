#pragma once

#include "net/endpoint.hpp"
#include "net/tls.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace kubelane::demo {

/// What the clients saw since the last `take`.
struct client_figures {
  std::uint64_t requests = 0;                ///< answered
  std::uint64_t failures = 0;                ///< not answered within the kubelet's own ten seconds
  std::uint64_t reconnects = 0;              ///< held connections that ended and were opened again
  std::chrono::milliseconds longest_gap{0};  ///< between two answers of one client

  client_figures& operator+=(const client_figures& other);
};

/// Clients that behave as a node's do: some hold a TLS connection and ask on it twenty times a
/// second, one opens a fresh connection ten times a second. What fails is tried again at once, on a
/// new connection, until ten seconds have passed; only then it counts as failed.
class client {
 public:
  /// `held` clients with a connection of their own, all through `proxy`.
  client(boost::asio::io_context& io, net::endpoint proxy, net::tls_context tls, int held);
  /// `stop`, and the loop has turned until everything ended, before this.
  ~client();

  /// The figures since the last call; a gap that is still open counts as far as it goes.
  client_figures take();
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::demo
