#include "net/stream.hpp"
#include "net/tls.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/run.hpp"

#include <gtest/gtest.h>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using test::client_settings;
using namespace std::chrono_literals;

// The client's first flight, as a server without TLS sees it.
std::string hello_of(const net::client_tls& settings) {
  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  const auto port = acceptor.local_endpoint().port();
  auto client = test::connect(io, net::endpoint(asio::ip::address_v4::loopback(), port));
  auto served = acceptor.accept();
  test::run(io, [&]() -> asio::awaitable<void> {
    auto shaking = client.client_handshake(*net::tls_context::client(settings), net::tls_session());
    co_await net::with_timeout(20ms, std::move(shaking));
  }());
  std::string bytes(16 * 1024, '\0');
  bytes.resize(served.read_some(asio::buffer(bytes)));
  return bytes;
}

TEST(TlsHello, OffersNothingBelowTls12) {
  const auto hello = hello_of(client_settings());
  EXPECT_EQ(hello.substr(9, 2), "\x03\x03");
  // supported_versions: extension 43, 5 bytes, a list of 4: TLS 1.3 and TLS 1.2.
  const std::string versions("\x00\x2b\x00\x05\x04\x03\x04\x03\x03", 9);
  EXPECT_NE(hello.find(versions), std::string::npos);
}

TEST(TlsHello, NamesTheServerAndHttp1) {
  const auto hello = hello_of(client_settings());
  EXPECT_NE(hello.find("kubernetes.default.svc"), std::string::npos);
  EXPECT_NE(hello.find("\x08http/1.1"), std::string::npos);
}

TEST(TlsHello, NamesNoIpAddress) {
  auto settings = client_settings();
  settings.server_name = "127.0.0.1";
  EXPECT_EQ(hello_of(settings).find("127.0.0.1"), std::string::npos);
}

TEST(TlsContext, SaysWhatIsWrongWithACa) {
  net::client_tls settings = client_settings();
  settings.ca_pem = "-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n";
  EXPECT_EQ(net::tls_context::client(settings).error(), "holds no certificate");
}

TEST(TlsContext, SaysThatKeyAndCertificateDoNotFit) {
  net::client_tls settings = client_settings();
  settings.certificate_pem = test::test_identity().certificate_pem;
  settings.key_pem = test::test_authority().issue({.common_name = "x", .names = {}}).key_pem;
  EXPECT_EQ(net::tls_context::client(settings).error(), "key does not fit certificate");
}

TEST(TlsContext, SaysThatAKeyIsNone) {
  net::client_tls settings = client_settings();
  settings.certificate_pem = test::test_identity().certificate_pem;
  settings.key_pem = "none";
  EXPECT_EQ(net::tls_context::client(settings).error(),
            "holds no private key (or one with a password)");
}

TEST(TlsContext, FullVerificationNeedsAName) {
  net::client_tls settings = client_settings();
  settings.server_name = "";
  EXPECT_EQ(net::tls_context::client(settings).error(), "server_name is empty");
}

}  // namespace
}  // namespace kubelane
