#include "proxy/commands/admin_client.hpp"

#include "net/http.hpp"
#include "net/timeout.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include <iostream>

namespace kubelane::commands {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using answered = std::tuple<boost::system::error_code, net::http_response>;

constexpr std::uint16_t admin_port = 8081;
constexpr std::size_t largest_body = 16 * 1024 * 1024;  // /metrics and /status stay far below

asio::awaitable<answered> ask(net::endpoint admin, std::string path) {
  tcp::socket socket(co_await asio::this_coro::executor);
  const tcp::endpoint to(admin.address(), admin.port());
  auto connecting = socket.async_connect(to, net::nothrow);
  auto [error] = co_await std::move(connecting);
  if (error) co_return answered{error, net::http_response()};
  net::stream stream(std::move(socket));
  net::http_request request;
  request.target = path;
  request.headers.emplace_back("Host", net::to_string(admin));
  request.headers.emplace_back("User-Agent", "kubelane/" KUBELANE_VERSION);
  request.keep_alive = false;
  net::http_limits limits;
  limits.body = largest_body;
  auto asking = net::exchange(stream, std::move(request), limits);
  co_return co_await std::move(asking);
}

asio::awaitable<void> ask_within(net::endpoint admin, std::string path,
                                 std::chrono::milliseconds limit, answered& result) {
  auto asking = net::with_timeout(limit, ask(admin, std::move(path)));
  result = co_await std::move(asking);
}

}  // namespace

std::optional<net::endpoint> parse_admin(const std::string& text) {
  const auto admin = net::parse_endpoint(text, admin_port);
  if (admin) return *admin;
  std::cerr << "--admin " << text << ": not an address, as 127.0.0.1:8081\n";
  return std::nullopt;
}

boost::system::result<admin_answer, std::string> ask_admin(const net::endpoint& admin,
                                                           const std::string& path,
                                                           std::chrono::milliseconds limit) {
  asio::io_context io;
  answered result;
  auto asking = ask_within(admin, path, limit, result);
  asio::co_spawn(io, std::move(asking), asio::detached);
  io.run();
  auto& [error, response] = result;
  if (error) return std::string(error.message());
  return admin_answer{response.status, std::move(response.body)};
}

}  // namespace kubelane::commands
