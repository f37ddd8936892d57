#include "demo/apiserver_connection.hpp"
#include "net/timeout.hpp"

#include <boost/asio/buffer.hpp>

#include <array>
#include <charconv>
#include <tuple>

namespace kubelane::demo {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t block = 64 * 1024;
constexpr std::uint64_t answer_after_count = 200'000;

struct command {
  std::string word;
  std::uint64_t number = 0;
};

command parse(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto space = std::min(line.find(' '), line.size());
  command result{.word = std::string(line.substr(0, space))};
  const auto rest = line.substr(std::min(space + 1, line.size()));
  std::from_chars(rest.data(), rest.data() + rest.size(), result.number);
  return result;
}

// Cuts a connection's bytes into lines; what follows a line is kept.
class line_reader {
 public:
  explicit line_reader(net::stream& from) : from_(from) {}

  // Nothing at the end of the connection.
  asio::awaitable<std::optional<std::string>> next() {
    for (;;) {
      if (const auto end = kept_.find('\n'); end != std::string::npos) {
        auto line = kept_.substr(0, end);
        kept_.erase(0, end + 1);
        co_return line;
      }
      const bool more = co_await fill();
      if (!more) co_return std::nullopt;
    }
  }

  // Everything that is there, at least one byte; empty at the end.
  asio::awaitable<std::string> rest() {
    if (kept_.empty()) co_await fill();
    co_return std::exchange(kept_, {});
  }

 private:
  asio::awaitable<bool> fill() {
    const auto old = kept_.size();
    kept_.resize(old + block);
    auto [error, n] = co_await from_.read_some(asio::buffer(kept_.data() + old, block));
    kept_.resize(old + n);
    co_return !error;
  }

  net::stream& from_;
  std::string kept_;
};

asio::awaitable<void> take_all(apiserver_state& server, line_reader& reader) {
  server.counters.received = 0;
  for (;;) {
    const auto bytes = co_await reader.rest();
    if (bytes.empty()) co_return;
    server.counters.received += bytes.size();
  }
}

asio::awaitable<void> count_all(apiserver_state& server, net::stream& client, line_reader& reader,
                                milliseconds delay) {
  co_await take_all(server, reader);
  co_await server.proceed(delay);
  const auto line = std::to_string(server.counters.received) + "\n";
  co_await client.write(line);
  co_await send_pattern(client, answer_after_count);
}

asio::awaitable<void> echo_all(apiserver_state& server, net::stream& client, line_reader& reader) {
  for (;;) {
    const auto bytes = co_await reader.rest();
    co_await server.proceed(0ms);
    if (bytes.empty()) co_return;
    auto [failed] = co_await client.write(bytes);
    if (failed) co_return;
  }
}

asio::awaitable<void> stay_deaf(net::stream& client) {
  for (;;) {
    asio::steady_timer timer(co_await asio::this_coro::executor, 1h);
    auto [error] = co_await timer.async_wait(net::nothrow);
    if (error || !client.is_open()) co_return;
  }
}

// False when the connection is done with.
asio::awaitable<bool> carry_out(apiserver_state& server, net::stream& client, line_reader& reader,
                                command wanted) {
  if (wanted.word == "name") {
    const auto line = server.options.name + "\n";
    auto [failed] = co_await client.write(line);
    co_return !failed;
  }
  if (wanted.word == "bytes") co_return co_await send_pattern(client, wanted.number);
  if (wanted.word == "count")
    co_await count_all(server, client, reader, milliseconds(wanted.number));
  if (wanted.word == "echo") co_await echo_all(server, client, reader);
  if (wanted.word == "deaf") co_await stay_deaf(client);
  if (wanted.word == "reset") client.reset();
  if (wanted.word == "shut") {
    net::error_code ignored;
    client.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    co_await take_all(server, reader);
  }
  co_return false;
}

}  // namespace

std::string pattern(std::uint64_t offset, std::size_t size) {
  std::string result(size, '\0');
  for (auto& byte : result) {
    byte = static_cast<char>(offset ^ (offset >> 8) ^ (offset >> 16) ^ (offset >> 24));
    ++offset;
  }
  return result;
}

asio::awaitable<bool> send_pattern(net::stream& to, std::uint64_t size) {
  for (std::uint64_t sent = 0; sent < size;) {
    const auto part =
        pattern(sent, static_cast<std::size_t>(std::min<std::uint64_t>(block, size - sent)));
    auto [failed] = co_await to.write(part);
    if (failed) co_return false;
    sent += part.size();
  }
  co_return true;
}

asio::awaitable<void> serve_plain(apiserver_state& server, net::stream& client) {
  line_reader reader(client);
  for (bool more = true; more;) {
    const auto line = co_await reader.next();
    co_await server.proceed(server.behaviour.before_answer);
    if (!line) co_return;
    auto wanted = parse(*line);
    more = co_await carry_out(server, client, reader, std::move(wanted));
  }
}

}  // namespace kubelane::demo
