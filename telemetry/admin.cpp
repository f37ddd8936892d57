#include "telemetry/admin.hpp"

#include "net/task_group.hpp"
#include "net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include <sys/socket.h>

#include <list>

namespace kubelane::telemetry {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using net::nothrow;
using namespace std::chrono_literals;

constexpr std::size_t max_connections = 16;
constexpr std::size_t max_request = 8 * 1024;
constexpr auto idle_limit = 5s;

using request = http::request<http::empty_body>;
using response = http::response<http::string_body>;

response answer(const request& asked, admin_scope scope, const admin_handler& handler) {
  const std::string_view target = asked.target();
  const auto path = target.substr(0, target.find('?'));
  admin_response made;
  if (asked.method() != http::verb::get && asked.method() != http::verb::head) {
    made = {405, "text/plain; charset=utf-8", "only GET and HEAD are served here\n", {}};
  } else if (scope == admin_scope::metrics_only && path != "/metrics") {
    made = {404, "text/plain; charset=utf-8", "only /metrics is served here\n", {}};
  } else {
    made = handler(path);
  }
  response result(static_cast<http::status>(made.status), asked.version());
  result.set(http::field::content_type, made.content_type);
  result.set(http::field::cache_control, "no-store");
  result.set("X-Content-Type-Options", "nosniff");
  result.set("Content-Security-Policy", made.policy.empty() ? "default-src 'none'" : made.policy);
  if (made.status == 405) result.set(http::field::allow, "GET, HEAD");
  result.keep_alive(asked.keep_alive());
  result.content_length(made.body.size());
  if (asked.method() != http::verb::head) result.body() = std::move(made.body);
  return result;
}

}  // namespace

struct admin::impl {
  asio::io_context& io;
  admin_handler handler;
  std::function<bool(const asio::ip::address&)> may_ask_metrics;
  std::list<beast::tcp_stream> connections;  // oldest first
  std::list<tcp::acceptor> acceptors;
  net::task_group tasks;

  impl(asio::io_context& context, admin_handler answers,
       std::function<void(std::exception_ptr)> on_bug)
      : io(context),
        handler(std::move(answers)),
        tasks(context.get_executor(), std::move(on_bug)) {}

  void close_oldest() {
    boost::system::error_code ignored;
    connections.front().socket().close(ignored);
  }

  bool may_ask(const tcp::socket& client, admin_scope scope) const {
    if (scope != admin_scope::metrics_only || !may_ask_metrics) return true;
    boost::system::error_code error;
    const auto peer = client.remote_endpoint(error);
    return !error && may_ask_metrics(peer.address());
  }

  void serve(tcp::socket socket, admin_scope scope) {
    if (!may_ask(socket, scope)) return;
    if (connections.size() >= max_connections) close_oldest();
    connections.emplace_back(std::move(socket));
    tasks.spawn(converse(std::prev(connections.end()), scope));
  }

  asio::awaitable<void> converse(std::list<beast::tcp_stream>::iterator stream, admin_scope scope) {
    struct erase_at_end {
      std::list<beast::tcp_stream>& list;
      std::list<beast::tcp_stream>::iterator at;
      ~erase_at_end() { list.erase(at); }
    } const guard{connections, stream};
    beast::flat_buffer buffer(max_request);
    for (bool more = true; more;) {
      http::request_parser<http::empty_body> parser;
      parser.header_limit(max_request);
      stream->expires_after(idle_limit);
      auto reading = http::async_read(*stream, buffer, parser, nothrow);
      auto [read_error, read] = co_await std::move(reading);
      if (read_error) break;
      auto made = answer(parser.get(), scope, handler);
      const bool asked_head = parser.get().method() == http::verb::head;
      http::response_serializer<http::string_body> serializer(made);
      stream->expires_after(idle_limit);
      auto writing = asked_head ? http::async_write_header(*stream, serializer, nothrow)
                                : http::async_write(*stream, serializer, nothrow);
      auto [error, written] = co_await std::move(writing);
      more = !error && made.keep_alive();
    }
    boost::system::error_code ignored;
    stream->socket().shutdown(tcp::socket::shutdown_both, ignored);
  }

  asio::awaitable<void> accept(tcp::acceptor& acceptor, admin_scope scope) {
    asio::steady_timer pause(io);
    while (acceptor.is_open()) {
      auto accepting = acceptor.async_accept(nothrow);
      auto [error, socket] = co_await std::move(accepting);
      if (!acceptor.is_open()) co_return;
      if (!error) {
        serve(std::move(socket), scope);
        continue;
      }
      pause.expires_after(100ms);  // out of descriptors: it does not get better by asking at once
      auto pausing = pause.async_wait(nothrow);
      co_await std::move(pausing);
    }
  }
};

admin::admin(asio::io_context& io, admin_handler handler,
             std::function<void(std::exception_ptr)> on_bug)
    : impl_(std::make_unique<impl>(io, std::move(handler), std::move(on_bug))) {}

admin::~admin() = default;

void admin::restrict_metrics(std::function<bool(const asio::ip::address&)> may_ask) {
  impl_->may_ask_metrics = std::move(may_ask);
}

void admin::listen(int descriptor, admin_scope scope) {
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length);
  const auto protocol = local.ss_family == AF_INET6 ? tcp::v6() : tcp::v4();
  auto& acceptor = impl_->acceptors.emplace_back(impl_->io, protocol, descriptor);
  impl_->tasks.spawn(impl_->accept(acceptor, scope));
}

void admin::stop() {
  boost::system::error_code ignored;
  for (auto& acceptor : impl_->acceptors) acceptor.close(ignored);
  for (auto& stream : impl_->connections) stream.socket().close(ignored);
  impl_->tasks.cancel();
}

}  // namespace kubelane::telemetry
