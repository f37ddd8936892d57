#include "net/tls.hpp"

#include "net/http.hpp"
#include "net/stream.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/run.hpp"

#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include <thread>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using net::error_code;
using net::stream_error;
using test::client_settings;
using namespace std::chrono_literals;

net::tls_context context_of(const net::client_tls& settings) {
  return *net::tls_context::client(settings);
}

class Tls : public testing::Test {
 protected:
  error_code handshake(net::stream& over, const net::tls_context& context) {
    error_code result = asio::error::would_block;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto shaking = over.client_handshake(context, session);
      auto [error] = co_await net::with_timeout(5s, std::move(shaking));
      result = error;
    }());
    return result;
  }

  error_code handshake(const net::client_tls& settings) {
    stream.emplace(test::connect(io, server.address()));
    return handshake(*stream, context_of(settings));
  }

  // One exchange, so that session tickets have come.
  unsigned ask(net::stream& over, const std::string& path = "/readyz") {
    unsigned status = 0;
    test::run(io, [&]() -> asio::awaitable<void> {
      net::http_request request;
      request.target = path;
      auto asking = net::exchange(over, request);
      auto [error, response] = co_await std::move(asking);
      if (!error) status = response.status;
    }());
    return status;
  }

  error_code watch(net::stream& over, std::chrono::milliseconds limit = 2s) {
    error_code result;
    test::run(io, [&]() -> asio::awaitable<void> {
      auto watching = over.watch();
      auto [error] = co_await net::with_timeout(limit, std::move(watching));
      result = error;
    }());
    return result;
  }

  asio::io_context io;
  test::fake_apiserver server;
  net::tls_session session;
  std::optional<net::stream> stream;
};

TEST_F(Tls, VerifiesAKubernetesCertificate) {
  EXPECT_EQ(handshake(client_settings()), error_code());
  EXPECT_EQ(ask(*stream), 200u);
}

TEST_F(Tls, VerifiesAnIpAddress) {
  auto settings = client_settings();
  settings.server_name = "127.0.0.1";
  EXPECT_EQ(handshake(settings), error_code());
}

TEST_F(Tls, RefusesAnotherName) {
  auto settings = client_settings();
  settings.server_name = "elsewhere.example";
  EXPECT_EQ(handshake(settings), stream_error::wrong_certificate);
  EXPECT_EQ(stream->failure(),
            "certificate is for kubernetes, kubernetes.default, kubernetes.default.svc and more, "
            "not for elsewhere.example");
}

TEST_F(Tls, RefusesAnotherIpAddress) {
  auto settings = client_settings();
  settings.server_name = "10.1.2.3";
  EXPECT_EQ(handshake(settings), stream_error::wrong_certificate);
}

TEST_F(Tls, WithCaAloneAnyNameWillDo) {
  auto settings = client_settings();
  settings.server_name = "elsewhere.example";
  settings.verify = net::verify_peer::ca;
  EXPECT_EQ(handshake(settings), error_code());
}

TEST_F(Tls, RefusesAnotherCa) {
  const demo::authority other("another CA");
  auto settings = client_settings();
  settings.ca_pem = other.certificate_pem();
  EXPECT_EQ(handshake(settings), stream_error::wrong_certificate);
  EXPECT_EQ(stream->failure(), "certificate signed by another CA than ours (kubelane test CA)");
}

TEST_F(Tls, WithoutVerificationAnythingWillDo) {
  net::client_tls settings;
  settings.verify = net::verify_peer::none;
  EXPECT_EQ(handshake(settings), error_code());
}

TEST_F(Tls, TrustsASecondCaOfTheFile) {
  const demo::authority other("another CA");
  auto settings = client_settings();
  settings.ca_pem = other.certificate_pem() + settings.ca_pem;
  EXPECT_EQ(handshake(settings), error_code());
}

TEST_F(Tls, ARefusedServerSeesAnOrderlyEnd) {
  auto settings = client_settings();
  settings.server_name = "elsewhere.example";
  handshake(settings);
  stream.reset();
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  const auto seen = server.counters();
  EXPECT_EQ(seen.failed_handshakes, 0u) << seen.last_failure;
  EXPECT_EQ(seen.cut, 0u);
}

TEST_F(Tls, TellsAnExpiredCertificateApart) {
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.valid_from = -48h;
  wanted.valid_until = -24h;
  server.use(test::server_tls(test::test_authority(), wanted));
  EXPECT_EQ(handshake(client_settings()), stream_error::bad_validity);
  EXPECT_TRUE(stream->failure().starts_with("certificate expired 20")) << stream->failure();
}

TEST_F(Tls, TellsAFutureCertificateApart) {
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.valid_from = 24h;
  wanted.valid_until = 48h;
  server.use(test::server_tls(test::test_authority(), wanted));
  EXPECT_EQ(handshake(client_settings()), stream_error::bad_validity);
  EXPECT_TRUE(stream->failure().starts_with("certificate not valid before 20"));
}

TEST_F(Tls, AnExpiredCertificateOfAnotherCaIsAboveAllWrong) {
  const demo::authority other("another CA");
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.valid_until = -10s;
  server.use(test::server_tls(other, wanted));
  EXPECT_EQ(handshake(client_settings()), stream_error::wrong_certificate);
}

TEST_F(Tls, KnowsWhenTheCertificateEnds) {
  handshake(client_settings());
  const auto left = *stream->peer_expiry() - std::chrono::system_clock::now();
  EXPECT_GT(left, 23h);
  EXPECT_LE(left, 24h);
}

TEST_F(Tls, SpeaksTls13Alone) {
  auto only = test::test_tls();
  only.lowest = net::tls_version::tls1_3;
  server.use(only);
  EXPECT_EQ(handshake(client_settings()), error_code());
}

TEST_F(Tls, SpeaksTls12WithEcdsaAlone) {
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.key = demo::key_kind::p256;
  auto only = test::server_tls(test::test_authority(), wanted);
  only.highest = net::tls_version::tls1_2;
  only.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
  server.use(only);
  EXPECT_EQ(handshake(client_settings()), error_code());
}

TEST_F(Tls, SpeaksWithALargeRsaKey) {
  auto wanted = demo::apiserver_certificate("cp1");
  wanted.key = demo::key_kind::rsa_4096;
  server.use(test::server_tls(test::test_authority(), wanted));
  EXPECT_EQ(handshake(client_settings()), error_code());
}

TEST_F(Tls, AnswersACertificateRequestWithNone) {
  auto asking = test::test_tls();
  asking.client = net::client_certificate::asked;
  server.use(asking);
  EXPECT_EQ(handshake(client_settings()), error_code());
  EXPECT_EQ(ask(*stream), 200u);
  EXPECT_EQ(server.counters().last_client, "");
}

TEST_F(Tls, ShowsItsClientCertificate) {
  auto asking = test::test_tls();
  asking.client = net::client_certificate::required;
  asking.client_ca_pem = test::test_authority().certificate_pem();
  server.use(asking);
  const auto identity = test::test_authority().issue({.common_name = "worker-1", .names = {}});
  auto settings = client_settings();
  settings.certificate_pem = identity.certificate_pem;
  settings.key_pem = identity.key_pem;
  EXPECT_EQ(handshake(settings), error_code());
  EXPECT_EQ(ask(*stream), 200u);
  EXPECT_EQ(server.counters().last_client, "worker-1");
}

class TlsVersions : public Tls, public testing::WithParamInterface<net::tls_version> {};
INSTANTIATE_TEST_SUITE_P(All, TlsVersions,
                         testing::Values(net::tls_version::tls1_2, net::tls_version::tls1_3));

TEST_P(TlsVersions, ARequiredClientCertificateIsNamedAsTheReason) {
  auto requiring = test::test_tls();
  requiring.client = net::client_certificate::required;
  requiring.client_ca_pem = test::test_authority().certificate_pem();
  requiring.highest = GetParam();
  server.use(requiring);
  auto error = handshake(client_settings());
  if (!error) error = watch(*stream);  // TLS 1.3: the refusal comes after our handshake
  EXPECT_EQ(error, stream_error::certificate_required) << stream->failure();
}

TEST_P(TlsVersions, ResumesSessions) {
  auto only = test::test_tls();
  only.highest = GetParam();
  server.use(only);
  const auto context = context_of(client_settings());
  for (int round = 0; round < 3; ++round) {
    auto next = test::connect(io, server.address());
    EXPECT_EQ(handshake(next, context), error_code());
    EXPECT_EQ(ask(next), 200u);
    EXPECT_EQ(next.resumed(), round > 0);
    EXPECT_TRUE(next.peer_expiry());
  }
  EXPECT_EQ(server.counters().handshakes, 1u);
  EXPECT_EQ(server.counters().resumptions, 2u);
}

TEST_P(TlsVersions, ResumesAfterTheServerDroppedEverybody) {
  auto only = test::test_tls();
  only.highest = GetParam();
  server.use(only);
  const auto context = context_of(client_settings());
  for (int round = 0; round < 2; ++round) {
    auto next = test::connect(io, server.address());
    EXPECT_EQ(handshake(next, context), error_code());
    EXPECT_EQ(ask(next), 200u);
    EXPECT_EQ(next.resumed(), round > 0);
    server.drop_connections(demo::first_act::close);
    EXPECT_EQ(watch(next), stream_error::truncated);
  }
}

TEST_P(TlsVersions, AnotherContextResumesNothing) {
  auto only = test::test_tls();
  only.highest = GetParam();
  server.use(only);
  for (int round = 0; round < 2; ++round) {
    auto next = test::connect(io, server.address());
    EXPECT_EQ(handshake(next, context_of(client_settings())), error_code());
    EXPECT_EQ(ask(next), 200u);
    EXPECT_FALSE(next.resumed());
  }
}

TEST_F(Tls, ARefusedPeersSessionIsNotKept) {
  auto settings = client_settings();
  settings.server_name = "elsewhere.example";
  const auto context = context_of(settings);
  for (int round = 0; round < 2; ++round) {
    auto next = test::connect(io, server.address());
    EXPECT_EQ(handshake(next, context), stream_error::wrong_certificate);
    EXPECT_FALSE(next.resumed());
  }
}

TEST_F(Tls, PlainHttpIsNotTls) {
  server.change([](demo::apiserver_behaviour& it) { it.plain_http = true; });
  EXPECT_EQ(handshake(client_settings()), stream_error::not_tls);
  EXPECT_EQ(stream->failure(), "the answer is not TLS");
}

TEST_F(Tls, NoCommonVersionIsNamed) {
  auto settings = client_settings();
  server.use([] {
    auto only = test::test_tls();
    only.highest = net::tls_version::tls1_2;
    only.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";  // with an RSA certificate: nothing fits
    return only;
  }());
  EXPECT_EQ(handshake(settings), stream_error::tls_failed);
  EXPECT_EQ(stream->failure(), "the peer's alert: handshake failure");
}

TEST_F(Tls, AQuietConnectionStaysQuietWhenTicketsCome) {
  handshake(client_settings());
  EXPECT_EQ(watch(*stream, 100ms), asio::error::timed_out);
  EXPECT_EQ(ask(*stream), 200u);
}

TEST_F(Tls, AnEndWithoutCloseNotifyIsTruncated) {
  handshake(client_settings());
  ask(*stream);
  server.drop_connections(demo::first_act::close);
  EXPECT_EQ(watch(*stream), stream_error::truncated);
}

TEST_F(Tls, AnOrderlyEndIsEof) {
  server.change([](demo::apiserver_behaviour& it) { it.close_after_answer = true; });
  handshake(client_settings());
  EXPECT_EQ(ask(*stream), 200u);
  EXPECT_EQ(watch(*stream), asio::error::eof);
}

TEST_F(Tls, AResetIsAReset) {
  handshake(client_settings());
  ask(*stream);
  server.drop_connections(demo::first_act::reset);
  EXPECT_EQ(watch(*stream), asio::error::connection_reset);
}

TEST_F(Tls, ATimedOutHandshakeCanGoOn) {
  server.freeze();
  net::stream late = test::connect(io, server.address());
  const auto context = context_of(client_settings());
  error_code first;
  test::run(io, [&]() -> asio::awaitable<void> {
    auto shaking = late.client_handshake(context, session);
    auto [error] = co_await net::with_timeout(50ms, std::move(shaking));
    first = error;
  }());
  EXPECT_EQ(first, asio::error::timed_out);
  server.thaw();
  EXPECT_EQ(handshake(late, context), error_code());
  EXPECT_EQ(ask(late), 200u);
}

TEST_F(Tls, ClosesInOrder) {
  handshake(client_settings());
  ask(*stream);
  stream->close();
  EXPECT_TRUE(test::poll_until([&] { return server.counters().open == 0; }));
  EXPECT_EQ(server.counters().cut, 0u);
}

}  // namespace
}  // namespace kubelane
