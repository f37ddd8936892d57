#include "net/http.hpp"

#include "tests/support/fake_apiserver.hpp"
#include "tests/support/run.hpp"

#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using net::error_code;
using namespace std::chrono_literals;

// A plain connection whose other end says what the test wants.
class Http : public testing::Test {
 protected:
  Http() : client(tcp::socket(io)), peer(io) {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    const auto port = acceptor.local_endpoint().port();
    client = test::connect(io, net::endpoint(asio::ip::address_v4::loopback(), port));
    acceptor.accept(peer);
  }

  void answer(const std::string& text) { asio::write(peer, asio::buffer(text)); }

  error_code read(net::http_limits limits = {}) {
    net::http_response_reader reader(limits);
    return read(reader);
  }

  error_code read(net::http_response_reader& reader, std::chrono::milliseconds limit = 2s) {
    error_code result;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto reading = reader.read(client);
      auto [error] = co_await net::with_timeout(limit, std::move(reading));
      result = error;
    }());
    if (!result) response = reader.take();
    return result;
  }

  asio::io_context io;
  net::stream client;
  tcp::socket peer;
  net::http_response response;
};

TEST_F(Http, ReadsABodyWithALength) {
  answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Name: cp1\r\n\r\nok");
  EXPECT_EQ(read(), error_code());
  EXPECT_EQ(response.status, 200u);
  EXPECT_EQ(response.reason, "OK");
  EXPECT_EQ(response.body, "ok");
  EXPECT_EQ(net::find_header(response.headers, "x-name"), "cp1");
  EXPECT_TRUE(response.keep_alive);
}

TEST_F(Http, ReadsAChunkedBody) {
  answer("HTTP/1.1 500 Internal Server Error\r\nTransfer-Encoding: chunked\r\n\r\n");
  answer("5\r\n[-]et\r\n");
  answer("2\r\ncd\r\n0\r\n\r\n");
  EXPECT_EQ(read(), error_code());
  EXPECT_EQ(response.body, "[-]etcd");
  EXPECT_TRUE(response.keep_alive);
}

TEST_F(Http, ReadsToTheEndWhereThereIsNoLength) {
  answer("HTTP/1.1 200 OK\r\n\r\nall of it");
  peer.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(read(), error_code());
  EXPECT_EQ(response.body, "all of it");
  EXPECT_FALSE(response.keep_alive);
}

TEST_F(Http, AClosingAnswerEndsTheConnection) {
  answer("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(read(), error_code());
  EXPECT_FALSE(response.keep_alive);
}

TEST_F(Http, AnHttp10AnswerEndsTheConnection) {
  answer("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(read(), error_code());
  EXPECT_FALSE(response.keep_alive);
}

TEST_F(Http, MoreThanWasAskedForSpoilsTheConnection) {
  answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n");
  EXPECT_EQ(read(), error_code());
  EXPECT_FALSE(response.keep_alive);
}

TEST_F(Http, PassesInterimAnswersBy) {
  answer("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(read(), error_code());
  EXPECT_EQ(response.status, 200u);
}

TEST_F(Http, ACutAnswerIsTruncated) {
  answer("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok");
  peer.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(read(), net::stream_error::truncated);
}

TEST_F(Http, NoAnswerIsEof) {
  peer.shutdown(tcp::socket::shutdown_send);
  EXPECT_EQ(read(), asio::error::eof);
}

TEST_F(Http, WhatIsNoHttpIsAnError) {
  answer("SSH-2.0-OpenSSH_9.2\r\n\r\n");
  EXPECT_TRUE(read());
}

TEST_F(Http, LargeHeadersAreAnError) {
  answer("HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_TRUE(read());
}

TEST_F(Http, LargeBodiesAreAnError) {
  answer("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + std::string(70'000, 'x'));
  EXPECT_TRUE(read());
}

TEST_F(Http, LimitsCanBeRaised) {
  answer("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + std::string(70'000, 'x'));
  EXPECT_EQ(read(net::http_limits{.body = 100'000}), error_code());
  EXPECT_EQ(response.body.size(), 70'000u);
}

TEST_F(Http, ATimedOutReadGoesOn) {
  net::http_response_reader reader;
  answer("HTTP/1.1 200 OK\r\nContent-");
  EXPECT_EQ(read(reader, 20ms), asio::error::timed_out);
  answer("Length: 2\r\n\r\no");
  EXPECT_EQ(read(reader, 20ms), asio::error::timed_out);
  answer("k");
  EXPECT_EQ(read(reader), error_code());
  EXPECT_EQ(response.body, "ok");
}

TEST(HttpText, WritesARequest) {
  net::http_request request;
  request.target = "/readyz";
  request.headers.emplace_back("Host", "kubernetes.default.svc");
  EXPECT_EQ(to_text(request), "GET /readyz HTTP/1.1\r\nHost: kubernetes.default.svc\r\n\r\n");
}

TEST(HttpText, WritesAResponseWithItsLength) {
  net::http_response response;
  response.body = "ok";
  EXPECT_EQ(to_text(response), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

TEST(HttpExchange, AsksAndReads) {
  test::fake_apiserver server("cp4");
  server.change([](demo::apiserver_behaviour& it) { it.plain_http = true; });
  asio::io_context io;
  auto over = test::connect(io, server.address());
  net::http_response response;
  test::run(io, [&]() -> asio::awaitable<void> {
    net::http_request request;
    request.method = "PUT";
    request.target = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
    request.body = "{}";
    auto asking = net::exchange(over, request);
    auto [error, answer] = co_await std::move(asking);
    EXPECT_FALSE(error) << error.message();
    response = answer;
  }());
  EXPECT_EQ(response.status, 200u);
  EXPECT_EQ(net::find_header(response.headers, "Served-By"), "cp4");
}

TEST(HttpExchange, ReadsALongAnswer) {
  test::fake_apiserver server;
  server.change([](demo::apiserver_behaviour& it) { it.plain_http = true; });
  asio::io_context io;
  auto over = test::connect(io, server.address());
  test::run(io, [&]() -> asio::awaitable<void> {
    net::http_request request;
    request.target = "/bytes?n=300000";
    const net::http_limits limits{.body = 1'000'000};
    auto asking = net::exchange(over, request, limits);
    auto [error, answer] = co_await std::move(asking);
    EXPECT_FALSE(error) << error.message();
    EXPECT_TRUE(answer.body == demo::pattern(0, 300'000));
  }());
}

}  // namespace
}  // namespace kubelane
