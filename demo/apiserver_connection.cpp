#include "demo/apiserver_connection.hpp"

#include "net/timeout.hpp"

#include <sys/socket.h>

namespace kubelane::demo {
namespace {

using namespace std::chrono_literals;
using net::error_code;

constexpr auto handshake_limit = 32s;  // kube-apiserver's
constexpr char tls_hello = 0x16;

// Lists the connection for as long as it lives.
class listed {
 public:
  listed(apiserver_state& server, net::stream& stream) : server_(server) {
    place_ = server.connections.insert(server.connections.end(), {&stream});
    ++server.counters.accepted;
    ++server.counters.open;
  }
  ~listed() {
    server_.connections.erase(place_);
    --server_.counters.open;
  }
  listed(const listed&) = delete;
  listed& operator=(const listed&) = delete;

 private:
  apiserver_state& server_;
  std::list<apiserver_state::open_connection>::iterator place_;
};

// The first byte, left in place; nothing if the connection ended before it.
asio::awaitable<std::optional<char>> first_byte(net::stream& client) {
  auto [error] = co_await client.watch();
  char byte = 0;
  if (error || ::recv(client.socket().native_handle(), &byte, 1, MSG_PEEK) != 1)
    co_return std::nullopt;
  co_return byte;
}

void note_failure(apiserver_state& server, net::stream& client, std::string why) {
  if (!client.is_open()) return;  // we ended it
  ++server.counters.failed_handshakes;
  server.counters.last_failure = std::move(why);
}

asio::awaitable<void> serve_tls(apiserver_state& server, net::stream& client) {
  auto handshake = client.server_handshake(server.context);
  auto [failed] = co_await net::with_timeout(handshake_limit, std::move(handshake));
  if (failed) {
    note_failure(server, client, client.failure().empty() ? failed.message() : client.failure());
    co_return;
  }
  ++(client.resumed() ? server.counters.resumptions : server.counters.handshakes);
  server.counters.last_client = client.peer_common_name();
  co_await server.proceed(0ms);
  const auto end = co_await serve_http(server, client);
  if (end && end != asio::error::eof && client.is_open()) ++server.counters.cut;
}

}  // namespace

asio::awaitable<void> apiserver_state::proceed(milliseconds delay) {
  while (frozen) {
    auto [woken] = co_await thawed.async_wait(net::nothrow);
    static_cast<void>(woken);  // always aborted: by `thaw`, or by our own cancellation
  }
  if (delay == 0ms) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, delay);
  auto [cancelled] = co_await timer.async_wait(net::nothrow);
  static_cast<void>(cancelled);
}

asio::awaitable<void> serve_connection(apiserver_state& server, asio::ip::tcp::socket socket) {
  net::stream client(std::move(socket));
  const listed entry(server, client);
  if (!server.behaviour.greeting.empty()) {
    const auto greeting = server.behaviour.greeting;
    co_await client.write(greeting);
  }
  const auto first = co_await first_byte(client);
  co_await server.proceed(server.behaviour.before_tls);
  if (!first) {
    note_failure(server, client, "EOF");
    co_return;
  }
  switch (server.behaviour.act) {
    case first_act::serve:
      break;
    case first_act::close:
      client.drop();
      co_return;
    case first_act::reset:
      client.reset();
      co_return;
  }
  if (server.behaviour.plain_http) {
    co_await serve_http(server, client);
  } else if (*first == tls_hello) {
    co_await serve_tls(server, client);
  } else {
    co_await serve_plain(server, client);
  }
}

}  // namespace kubelane::demo
