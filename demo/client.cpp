#include "demo/client.hpp"

#include "net/http.hpp"
#include "net/task_group.hpp"
#include "net/timeout.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <list>
#include <optional>

namespace kubelane::demo {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;
using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto request_limit = 10s;  // the kubelet's for a lease
constexpr auto held_period = 50ms;
constexpr auto fresh_period = 100ms;
constexpr auto retry_pause = 20ms;

}  // namespace

client_figures& client_figures::operator+=(const client_figures& other) {
  requests += other.requests;
  failures += other.failures;
  reconnects += other.reconnects;
  longest_gap = std::max(longest_gap, other.longest_gap);
  return *this;
}

struct client::impl {
  /// One client: held ones keep `connection` from request to request.
  struct asker {
    milliseconds period;
    bool holds;
    std::optional<net::stream> connection;
    clock::time_point last_answer = clock::now();
  };

  net::endpoint proxy;
  net::tls_context tls;
  client_figures figures;
  std::list<asker> askers;
  net::task_group tasks;
  bool stopping = false;

  impl(asio::io_context& io, net::endpoint to, net::tls_context context, int held)
      : proxy(to), tls(std::move(context)), tasks(io.get_executor(), [](std::exception_ptr) {}) {
    for (int i = 0; i < held; ++i) start(held_period, true);
    start(fresh_period, false);
  }

  void start(milliseconds period, bool holds) {
    auto& one = askers.emplace_back();
    one.period = period;
    one.holds = holds;
    tasks.spawn(ask_for_ever(one));
  }

  asio::awaitable<net::stream::status> open(asker& one) {
    tcp::socket socket(co_await asio::this_coro::executor);
    const tcp::endpoint to(proxy.address(), proxy.port());
    auto connecting = socket.async_connect(to, net::nothrow);
    auto [error] = co_await std::move(connecting);
    if (error) co_return net::stream::status(error);
    socket.set_option(tcp::no_delay(true), error);
    one.connection.emplace(std::move(socket));
    auto handshake = one.connection->client_handshake(tls, net::tls_session());
    co_return co_await std::move(handshake);
  }

  /// One request, on a connection opened for it where there is none.
  asio::awaitable<net::stream::status> ask(asker& one) {
    if (!one.connection) {
      auto opening = open(one);
      auto [error] = co_await std::move(opening);
      if (error) co_return net::stream::status(error);
    }
    net::http_request request;
    request.target = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node1";
    request.headers.emplace_back("Host", "kubernetes.default.svc");
    auto asking = net::exchange(*one.connection, std::move(request));
    auto [error, response] = co_await std::move(asking);
    if (!error && (response.status != 200 || !response.keep_alive)) one.connection.reset();
    co_return net::stream::status(error);
  }

  /// Asks until there is an answer or the time is up.
  asio::awaitable<void> ask_persistently(asker& one) {
    const auto deadline = clock::now() + request_limit;
    asio::steady_timer pause(co_await asio::this_coro::executor);
    while (!stopping) {
      auto asking = net::with_timeout(deadline - clock::now(), ask(one));
      auto [error] = co_await std::move(asking);
      if (!error) {
        note_answer(one);
        co_return;
      }
      if (one.holds && one.connection) ++figures.reconnects;
      one.connection.reset();
      if (clock::now() >= deadline) {
        ++figures.failures;
        co_return;
      }
      pause.expires_after(retry_pause);
      auto pausing = pause.async_wait(net::nothrow);
      co_await std::move(pausing);
    }
  }

  asio::awaitable<void> ask_for_ever(asker& one) {
    asio::steady_timer next(co_await asio::this_coro::executor);
    next.expires_at(clock::now());
    while (!stopping) {
      auto asking = ask_persistently(one);
      co_await std::move(asking);
      if (!one.holds) one.connection.reset();
      next.expires_at(std::max(next.expiry() + one.period, clock::now()));
      auto waiting = next.async_wait(net::nothrow);
      co_await std::move(waiting);
    }
  }

  void note_answer(asker& one) {
    const auto now = clock::now();
    ++figures.requests;
    figures.longest_gap = std::max(figures.longest_gap,
                                   std::chrono::duration_cast<milliseconds>(now - one.last_answer));
    one.last_answer = now;
  }
};

client::client(asio::io_context& io, net::endpoint proxy, net::tls_context tls, int held)
    : impl_(std::make_unique<impl>(io, proxy, std::move(tls), held)) {}

client::~client() = default;

client_figures client::take() {
  auto result = std::exchange(impl_->figures, {});
  for (const auto& one : impl_->askers)
    result.longest_gap =
        std::max(result.longest_gap,
                 std::chrono::duration_cast<milliseconds>(clock::now() - one.last_answer));
  return result;
}

void client::stop() {
  impl_->stopping = true;
  impl_->tasks.cancel();
}

}  // namespace kubelane::demo
