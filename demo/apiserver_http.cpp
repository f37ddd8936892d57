#include "demo/apiserver_connection.hpp"

#include <charconv>

namespace kubelane::demo {
namespace {

using net::error_code;
using namespace std::chrono_literals;

constexpr std::string_view own_agent = "kubelane/";

// The value of `key` in a query: `n=5&watch=1`.
std::optional<std::string_view> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const auto pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.starts_with(key) && pair.substr(key.size()).starts_with('='))
      return pair.substr(key.size() + 1);
  }
  return std::nullopt;
}

void count(apiserver_counters& counters, const net::http_request& request) {
  const auto header = [&](std::string_view name) {
    return std::string(net::find_header(request.headers, name).value_or(""));
  };
  ++counters.requests;
  counters.last_user_agent = header("User-Agent");
  counters.last_host = header("Host");
  counters.last_authorization = header("Authorization");
  if (counters.last_user_agent.starts_with(own_agent)) ++counters.probes;
}

path_answer answer_for(const apiserver_state& server, std::string_view path) {
  const auto& answers = server.behaviour.answers;
  if (const auto set = answers.find(path); set != answers.end()) return set->second;
  if (path == "/readyz" || path == "/livez" || path == "/healthz") return {};
  if (path == "/version")
    return {.status = 200, .body = R"({"major":"1","minor":"99","gitVersion":"v1.99.0"})"};
  return {.status = 200, .body = R"({"kind":"Demo","servedBy":")" + server.options.name + "\"}"};
}

asio::awaitable<error_code> send_watch(apiserver_state& server, net::stream& client) {
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  auto [failed] = co_await client.write(head);
  for (std::uint64_t n = 1; !failed; ++n) {
    const auto line = R"({"type":"BOOKMARK","servedBy":")" + server.options.name + R"(","n":)" +
                      std::to_string(n) + "}\n";
    char size[16];
    const auto end = std::to_chars(size, size + sizeof size, line.size(), 16).ptr;
    const auto chunk = std::string(size, end) + "\r\n" + line + "\r\n";
    auto [error] = co_await client.write(chunk);
    failed = error;
    if (!failed) co_await server.proceed(server.behaviour.watch_period);
  }
  co_return failed;
}

asio::awaitable<error_code> send_bytes(net::stream& client, std::uint64_t size) {
  const auto head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
      "Content-Length: " +
      std::to_string(size) + "\r\n\r\n";
  auto [failed] = co_await client.write(head);
  if (failed) co_return failed;
  const bool sent = co_await send_pattern(client, size);
  co_return sent ? error_code() : make_error_code(boost::system::errc::broken_pipe);
}

asio::awaitable<error_code> answer(apiserver_state& server, net::stream& client,
                                   net::http_request request) {
  const std::string_view target = request.target;
  const auto mark = std::min(target.find('?'), target.size());
  const auto path = target.substr(0, mark);
  const auto query = target.substr(std::min(mark + 1, target.size()));
  const auto chosen = answer_for(server, path);
  co_await server.proceed(server.behaviour.before_answer + chosen.delay);
  if (query_value(query, "watch") == "1") co_return co_await send_watch(server, client);
  if (path == "/bytes") {
    const auto text = query_value(query, "n").value_or("0");
    std::uint64_t size = 0;
    std::from_chars(text.data(), text.data() + text.size(), size);
    co_return co_await send_bytes(client, size);
  }
  const bool keep_alive = request.keep_alive && !server.behaviour.close_after_answer;
  net::http_response response;
  response.status = chosen.status;
  response.body = chosen.body;
  response.keep_alive = keep_alive;
  response.headers.emplace_back("Served-By", server.options.name);
  if (!server.behaviour.date.empty()) response.headers.emplace_back("Date", server.behaviour.date);
  response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  const auto text = to_text(response);
  auto [failed] = co_await client.write(text);
  if (!failed && !keep_alive) client.close();
  co_return failed || keep_alive ? failed : make_error_code(asio::error::eof);
}

}  // namespace

asio::awaitable<error_code> serve_http(apiserver_state& server, net::stream& client) {
  net::http_request_reader reader(net::http_limits{.header = 64 * 1024, .body = 1024 * 1024});
  for (;;) {
    auto [failed] = co_await reader.read(client);
    if (failed && !client.is_tls()) {
      const std::string refusal = "HTTP/1.0 400 Bad Request\r\n\r\nThis is plain HTTP.\n";
      co_await client.write(refusal);
    }
    if (failed) co_return failed;
    auto request = reader.take();
    count(server.counters, request);
    const auto error = co_await answer(server, client, std::move(request));
    if (error) co_return error;
  }
}

}  // namespace kubelane::demo
