#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

// A blocking client of the plain protocol.
struct plain_client {
  explicit plain_client(const net::endpoint& server) {
    socket.connect({server.address(), server.port()});
  }
  void send(const std::string& text) { asio::write(socket, asio::buffer(text)); }
  std::string line() {
    const auto size = asio::read_until(socket, asio::dynamic_buffer(pending), '\n');
    auto result = pending.substr(0, size - 1);
    pending.erase(0, size);
    return result;
  }
  std::string bytes(std::size_t size) {
    if (pending.size() < size)
      asio::read(socket, asio::dynamic_buffer(pending),
                 asio::transfer_exactly(size - pending.size()));
    auto result = pending.substr(0, size);
    pending.erase(0, size);
    return result;
  }
  boost::system::error_code end() {
    boost::system::error_code error;
    asio::read(socket, asio::dynamic_buffer(pending), error);
    return error;
  }
  bool has_data(std::chrono::milliseconds within) {
    return test::poll_until([&] { return socket.available() > 0; }, within);
  }

  asio::io_context io;
  tcp::socket socket{io};
  std::string pending;
};

TEST(Apiserver, TellsItsNameAndStays) {
  test::fake_apiserver server("cp7");
  plain_client client(server.address());
  client.send("name\n");
  EXPECT_EQ(client.line(), "cp7");
  client.send("name\n");
  EXPECT_EQ(client.line(), "cp7");
}

TEST(Apiserver, SendsAVerifiablePattern) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("bytes 300000\n");
  EXPECT_TRUE(client.bytes(300'000) == demo::pattern(0, 300'000));
}

TEST(Apiserver, CountsToTheEndThenAnswers) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("count 20\n" + std::string(300'000, 'x'));
  client.socket.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(client.line(), "300000");
  EXPECT_EQ(client.end(), asio::error::eof);
  EXPECT_TRUE(client.pending == demo::pattern(0, 200'000));
}

TEST(Apiserver, ShutsItsSideFirst) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("shut\n");
  EXPECT_EQ(client.end(), asio::error::eof);
  client.send(std::string(300'000, 'x'));
  client.socket.close();
  EXPECT_TRUE(test::poll_until([&] { return server.counters().received == 300'000; }));
}

TEST(Apiserver, EchoesToTheEnd) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("echo\nhello");
  EXPECT_EQ(client.bytes(5), "hello");
  client.socket.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(client.end(), asio::error::eof);
}

TEST(Apiserver, PushesToAWatch) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("name\n");
  client.line();
  server.with([](demo::apiserver& it) { it.push("event\n"); });
  EXPECT_EQ(client.line(), "event");
}

TEST(Apiserver, FrozenIsConnectedButSilentUntilThawed) {
  test::fake_apiserver server;
  plain_client old(server.address());
  old.send("name\n");
  old.line();
  server.freeze();
  plain_client fresh(server.address());
  fresh.send("name\n");
  old.send("name\n");
  EXPECT_FALSE(fresh.has_data(100ms));
  EXPECT_FALSE(old.has_data(1ms));
  server.thaw();
  EXPECT_EQ(fresh.line(), "cp1");
  EXPECT_EQ(old.line(), "cp1");
}

TEST(Apiserver, KilledRefusesAndComesBackOnTheSamePort) {
  test::fake_apiserver server;
  plain_client old(server.address());
  old.send("name\n");
  old.line();
  server.kill();
  EXPECT_EQ(old.end(), asio::error::eof);
  EXPECT_THROW(plain_client{server.address()}, boost::system::system_error);
  server.listen();
  plain_client fresh(server.address());
  fresh.send("name\n");
  EXPECT_EQ(fresh.line(), "cp1");
}

TEST(Apiserver, StopsListeningButServesOn) {
  test::fake_apiserver server;
  plain_client old(server.address());
  old.send("name\n");
  old.line();
  server.stop_listening();
  EXPECT_THROW(plain_client{server.address()}, boost::system::system_error);
  old.send("name\n");
  EXPECT_EQ(old.line(), "cp1");
}

TEST(Apiserver, DropsConnectionsWithReset) {
  test::fake_apiserver server;
  plain_client client(server.address());
  client.send("name\n");
  client.line();
  server.drop_connections(demo::first_act::reset);
  EXPECT_EQ(client.end(), asio::error::connection_reset);
}

TEST(Apiserver, CountsAConnectionWithoutAByteAsAFailedHandshake) {
  test::fake_apiserver server;
  { plain_client client(server.address()); }
  EXPECT_TRUE(test::poll_until([&] { return server.counters().failed_handshakes == 1; }));
}

// A blocking client of its HTTP, without TLS.
struct http_client : plain_client {
  explicit http_client(test::fake_apiserver& server) : plain_client(server.address()) {
    server.change([](demo::apiserver_behaviour& it) {
      it.plain_http = true;
      it.watch_period = 5ms;
    });
  }
  // The status line; the rest of the head is passed over.
  std::string ask(const std::string& method, const std::string& target) {
    send(method + " " + target + " HTTP/1.1\r\nHost: x\r\n\r\n");
    auto result = line();
    while (line() != "\r") {
    }
    return result;
  }
};

TEST(Apiserver, AnswersTheHealthPaths) {
  test::fake_apiserver server;
  http_client client(server);
  for (const auto* path : {"/readyz", "/livez", "/healthz"}) {
    EXPECT_EQ(client.ask("GET", path), "HTTP/1.1 200 OK\r");
    EXPECT_EQ(client.bytes(2), "ok");
  }
}

TEST(Apiserver, AnswersAPathAsToldTo) {
  test::fake_apiserver server;
  http_client client(server);
  server.answer("/readyz", demo::failing_readyz({"etcd"}));
  EXPECT_EQ(client.ask("GET", "/readyz"), "HTTP/1.1 500 Internal Server Error\r");
  EXPECT_EQ(client.line(), "[+]ping ok");
}

TEST(Apiserver, StreamsAWatch) {
  test::fake_apiserver server("cp2");
  http_client client(server);
  EXPECT_EQ(client.ask("GET", "/api/v1/nodes?watch=1"), "HTTP/1.1 200 OK\r");
  for (int i = 1; i <= 3; ++i) {
    client.line();  // the chunk's size
    EXPECT_EQ(client.line(),
              R"({"type":"BOOKMARK","servedBy":"cp2","n":)" + std::to_string(i) + "}");
    client.line();  // the chunk's end
  }
}

TEST(Apiserver, SendsLongAnswers) {
  test::fake_apiserver server;
  http_client client(server);
  EXPECT_EQ(client.ask("GET", "/bytes?n=100000"), "HTTP/1.1 200 OK\r");
  EXPECT_TRUE(client.bytes(100'000) == demo::pattern(0, 100'000));
}

TEST(Apiserver, AnswersAnyOtherPathWithItsName) {
  test::fake_apiserver server("cp2");
  http_client client(server);
  EXPECT_EQ(client.ask("PUT", "/apis/coordination.k8s.io/v1/leases/n1"), "HTTP/1.1 200 OK\r");
  EXPECT_EQ(client.bytes(5), "{\"kin");
}

}  // namespace
}  // namespace kubelane
