#pragma once

// Inside demo/ only.

#include "demo/apiserver.hpp"
#include "net/http.hpp"
#include "net/stream.hpp"
#include "net/task_group.hpp"

#include <boost/asio/steady_timer.hpp>

#include <list>

namespace kubelane::demo {

namespace asio = boost::asio;

/// What the server and its connections share; the server owns it, on one thread.
struct apiserver_state {
  struct open_connection {
    net::stream* stream;
  };

  apiserver_options options;
  net::tls_context context;
  apiserver_behaviour behaviour;
  apiserver_counters counters;
  bool frozen = false;
  asio::steady_timer thawed;  // never expires: cancelled to wake those who wait
  std::list<open_connection> connections;

  /// Waits while the server is frozen, then `delay`.
  asio::awaitable<void> proceed(milliseconds delay);
};

/// Serves one accepted connection until it ends.
asio::awaitable<void> serve_connection(apiserver_state& server, asio::ip::tcp::socket socket);

/// The text protocol, on a connection whose first bytes are no TLS hello.
asio::awaitable<void> serve_plain(apiserver_state& server, net::stream& client);
/// HTTP/1.1, on TLS or not. The error that ended it.
asio::awaitable<net::error_code> serve_http(apiserver_state& server, net::stream& client);

/// Sends `size` bytes of `pattern`; false if the connection ended.
asio::awaitable<bool> send_pattern(net::stream& to, std::uint64_t size);

}  // namespace kubelane::demo
