#include "demo/apiserver_thread.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <future>
#include <thread>

namespace kubelane::demo {

namespace asio = boost::asio;
using namespace std::chrono_literals;

struct apiserver_thread::impl {
  explicit impl(apiserver_options options)
      : name(options.name), server(io, std::move(options)), address(server.address()) {}

  std::string name;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  apiserver server;
  net::endpoint address;
  std::thread thread;
};

apiserver_thread::apiserver_thread(apiserver_options options)
    : impl_(std::make_unique<impl>(std::move(options))) {
  impl_->thread = std::thread([&io = impl_->io] { io.run(); });
}

apiserver_thread::~apiserver_thread() {
  if (!impl_) return;
  with([](apiserver& server) {
    server.thaw();
    server.stop();
  });
  impl_->work.reset();
  impl_->thread.join();
}

apiserver_thread::apiserver_thread(apiserver_thread&&) noexcept = default;

const std::string& apiserver_thread::name() const noexcept {
  return impl_->name;
}
net::endpoint apiserver_thread::address() const noexcept {
  return impl_->address;
}

void apiserver_thread::with(const std::function<void(apiserver&)>& what) {
  std::promise<void> done;
  asio::post(impl_->io, [&] {
    try {
      what(impl_->server);
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
}

void apiserver_thread::change(const std::function<void(apiserver_behaviour&)>& what) {
  with([&](apiserver& server) { what(server.behaviour()); });
}

void apiserver_thread::answer(const std::string& path, path_answer with_this) {
  change([&](apiserver_behaviour& behaviour) { behaviour.answers[path] = with_this; });
}

apiserver_counters apiserver_thread::counters() {
  apiserver_counters result;
  with([&](apiserver& server) { result = server.counters(); });
  return result;
}

void apiserver_thread::freeze() {
  with([](apiserver& server) { server.freeze(); });
}

void apiserver_thread::thaw() {
  with([](apiserver& server) { server.thaw(); });
}

void apiserver_thread::use(const net::server_tls& tls) {
  with([&](apiserver& server) { server.use(tls); });
}

void apiserver_thread::stop_listening() {
  with([](apiserver& server) { server.stop_listening(); });
}

void apiserver_thread::listen() {
  with([](apiserver& server) { server.listen(); });
}

void apiserver_thread::drop_connections(first_act how) {
  with([=](apiserver& server) { server.drop_connections(how); });
}

void apiserver_thread::kill() {
  with([](apiserver& server) { server.kill(); });
}

path_answer failing_readyz(const std::vector<std::string>& failed_checks) {
  const auto failed = [&](std::string_view name) {
    return std::find(failed_checks.begin(), failed_checks.end(), name) != failed_checks.end();
  };
  path_answer result{.status = 500, .body = {}};
  for (const std::string_view name : {"ping", "log", "etcd", "etcd-readiness", "shutdown"})
    if (!failed(name)) result.body += "[+]" + std::string(name) + " ok\n";
  for (const auto& name : failed_checks) result.body += "[-]" + name + " failed: reason withheld\n";
  result.body += "readyz check failed\n";
  return result;
}

}  // namespace kubelane::demo
