#include "demo/apiserver.hpp"

#include "demo/apiserver_connection.hpp"
#include "net/timeout.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <sys/socket.h>

#include <stdexcept>

namespace kubelane::demo {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

net::tls_context make_context(const net::server_tls& tls) {
  auto made = net::tls_context::server(tls);
  if (!made) throw std::runtime_error("API server certificate: " + made.error());
  return *made;
}

[[noreturn]] void report_bug(std::exception_ptr failure) {
  std::rethrow_exception(failure);  // out of the loop's run
}

}  // namespace

struct apiserver::impl {
  impl(asio::io_context& io, apiserver_options wanted)
      : state{.options = wanted,
              .context = make_context(wanted.tls),
              .behaviour = {},
              .counters = {},
              .thawed = asio::steady_timer(io, asio::steady_timer::time_point::max()),
              .connections = {}},
        acceptor(io),
        tasks(io.get_executor(), report_bug),
        address(wanted.listen) {}

  void listen();
  asio::awaitable<void> accept_all();

  apiserver_state state;
  tcp::acceptor acceptor;
  net::task_group tasks;
  net::endpoint address;
};

void apiserver::impl::listen() {
  const tcp::endpoint local(address.address(), address.port());
  acceptor.open(local.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(local);
  acceptor.listen(state.options.backlog);
  const auto bound = acceptor.local_endpoint();
  address = net::endpoint(bound.address(), bound.port());
  tasks.spawn(accept_all());
}

asio::awaitable<void> apiserver::impl::accept_all() {
  while (acceptor.is_open()) {
    co_await state.proceed(0ms);
    auto [error, socket] = co_await acceptor.async_accept(net::nothrow);
    if (error == asio::error::operation_aborted && !acceptor.is_open()) co_return;
    if (error == asio::error::operation_aborted) continue;  // frozen meanwhile
    if (error) {
      co_await state.proceed(100ms);  // out of descriptors, most likely
    } else {
      tasks.spawn(serve_connection(state, std::move(socket)));
    }
  }
}

apiserver::apiserver(asio::io_context& io, apiserver_options options)
    : impl_(std::make_unique<impl>(io, std::move(options))) {
  impl_->listen();
}

apiserver::~apiserver() = default;

net::endpoint apiserver::address() const noexcept {
  return impl_->address;
}
apiserver_behaviour& apiserver::behaviour() noexcept {
  return impl_->state.behaviour;
}

void apiserver::freeze() {
  impl_->state.frozen = true;
  net::error_code ignored;
  impl_->acceptor.cancel(ignored);
}

void apiserver::thaw() {
  impl_->state.frozen = false;
  impl_->state.thawed.cancel();
}

void apiserver::use(const net::server_tls& tls) {
  impl_->state.context = make_context(tls);
}

void apiserver::push(std::string bytes) {
  for (const auto& open : impl_->state.connections) {
    if (open.stream->is_tls()) continue;
    const auto descriptor = open.stream->socket().native_handle();
    static_cast<void>(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
}

void apiserver::stop_listening() {
  net::error_code ignored;
  impl_->acceptor.close(ignored);
}

void apiserver::listen() {
  if (!impl_->acceptor.is_open()) impl_->listen();
}

void apiserver::drop_connections(first_act how) {
  for (const auto& open : impl_->state.connections) {
    if (how == first_act::reset)
      open.stream->reset();
    else
      open.stream->drop();
  }
}

void apiserver::kill() {
  stop_listening();
  drop_connections(first_act::close);
}

void apiserver::stop() {
  stop_listening();
  impl_->tasks.cancel();
}

bool apiserver::stopped() const noexcept {
  return impl_->tasks.size() == 0;
}
const apiserver_counters& apiserver::counters() const noexcept {
  return impl_->state.counters;
}

}  // namespace kubelane::demo
