#include "net/stream.hpp"

#include "net/openssl.hpp"
#include "net/socket_bio.hpp"
#include "net/timeout.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace kubelane::net {
namespace {

using asio::ip::tcp;

constexpr unsigned char tls_alert = 0x15;
constexpr unsigned char tls_handshake = 0x16;

// One try at an operation: done (with or without an error), or what to wait for.
struct attempt {
  std::optional<tcp::socket::wait_type> wait_for;
  error_code error;
  std::size_t bytes = 0;
};

bool is_silence(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == EHOSTDOWN;
}

bool refuses_our_certificate(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return true;
    default:  // an open set
      return false;
  }
}

// `tlsv1 alert protocol version` -> `the peer's alert: protocol version`
std::string in_words(const std::string& openssl_reason) {
  static constexpr std::string_view mark = " alert ";
  const auto at = openssl_reason.find(mark);
  if (at == std::string::npos) return openssl_reason;
  return "the peer's alert: " + openssl_reason.substr(at + mark.size());
}

}  // namespace

struct stream::impl {
  explicit impl(tcp::socket taken) : socket(std::move(taken)) {
    error_code ignored;  // a closed socket fails at the first use
    socket.native_non_blocking(true, ignored);
    through.descriptor = socket.native_handle();
  }

  void begin(tls_context settings, bool as_client);
  void forget_errors();
  void offer(const tls_session& session);
  attempt shake_hands();
  error_code judge_peer();
  attempt read(void* into, std::size_t size);
  attempt peek();
  attempt write(std::string_view bytes);
  attempt tls_result(int returned, std::size_t bytes);
  error_code tls_failure();
  error_code system_failure(int error);
  error_code fail(stream_error what, std::string words);
  void say_goodbye() noexcept;

  tcp::socket socket;
  wire through;
  peer_findings findings;
  ssl_ptr ssl;
  std::string words;
  bool broken = false;  // the TLS state allows no close_notify any more
};

void stream::impl::begin(tls_context settings, bool as_client) {
  findings.context = std::move(settings);
  const auto& context = findings.context->internals();
  ssl.reset(SSL_new(context.context.get()));
  SSL_set_app_data(ssl.get(), &findings);
  auto bio = make_socket_bio(through);
  SSL_set_bio(ssl.get(), bio.get(), bio.get());
  bio.release();  // ssl's
  if (as_client)
    SSL_set_connect_state(ssl.get());
  else
    SSL_set_accept_state(ssl.get());
  const auto& name = context.server_name;
  error_code not_ip;
  asio::ip::make_address(name, not_ip);
  if (!name.empty() && not_ip) SSL_set_tlsext_host_name(ssl.get(), name.c_str());
}

void stream::impl::offer(const tls_session& session) {
  using namespace std::chrono_literals;
  findings.session = session.internals();
  const auto& kept = *findings.session;
  if (!kept.session || kept.context != findings.context) return;
  const auto now = std::chrono::system_clock::now();
  const auto age = now - kept.full_handshake;
  if (age < 0s || age >= 1h) return;
  auto* certificate = SSL_SESSION_get0_peer(kept.session.get());
  if (certificate && to_time(X509_get0_notAfter(certificate)) <= now) return;
  SSL_set_session(ssl.get(), kept.session.get());
}

// Those of an earlier attempt, in the library's queue and the wire's.
void stream::impl::forget_errors() {
  ERR_clear_error();
  through.error = 0;
}

attempt stream::impl::shake_hands() {
  forget_errors();
  auto result = tls_result(SSL_do_handshake(ssl.get()), 0);
  if (result.wait_for) return result;
  if (!result.error) result.error = judge_peer();
  if (result.error && findings.session) findings.session->session.reset();
  return result;
}

error_code stream::impl::judge_peer() {
  if (!findings.identity.empty()) return fail(stream_error::wrong_certificate, findings.identity);
  if (!findings.validity.empty()) return fail(stream_error::bad_validity, findings.validity);
  // Of a session's first handshake; all that were kept verified.
  assert(!SSL_session_reused(ssl.get()) ||
         findings.context->internals().verify == verify_peer::none ||
         SSL_get_verify_result(ssl.get()) == X509_V_OK);
  return {};
}

attempt stream::impl::read(void* into, std::size_t size) {
  if (ssl) {
    forget_errors();
    std::size_t n = 0;
    const int returned = SSL_read_ex(ssl.get(), into, size, &n);
    return tls_result(returned, n);
  }
  const auto n = ::recv(through.descriptor, into, size, 0);
  if (n == 0) return {{}, asio::error::eof, 0};
  if (n > 0) {
    through.received += static_cast<std::uint64_t>(n);
    return {{}, {}, static_cast<std::size_t>(n)};
  }
  if (errno == EAGAIN || errno == EINTR) return {tcp::socket::wait_read, {}, 0};
  return {{}, system_failure(errno), 0};
}

attempt stream::impl::peek() {
  char byte;
  if (ssl) {
    forget_errors();
    std::size_t n = 0;
    const int returned = SSL_peek_ex(ssl.get(), &byte, 1, &n);
    return tls_result(returned, n);
  }
  const auto n = ::recv(through.descriptor, &byte, 1, MSG_PEEK);
  if (n == 0) return {{}, asio::error::eof, 0};
  if (n > 0) return {{}, {}, 1};
  if (errno == EAGAIN || errno == EINTR) return {tcp::socket::wait_read, {}, 0};
  return {{}, system_failure(errno), 0};
}

attempt stream::impl::write(std::string_view bytes) {
  if (ssl) {
    forget_errors();
    std::size_t n = 0;
    const int returned = SSL_write_ex(ssl.get(), bytes.data(), bytes.size(), &n);
    return tls_result(returned, n);
  }
  const auto n = ::send(through.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n >= 0) return {{}, {}, static_cast<std::size_t>(n)};
  if (errno == EAGAIN || errno == EINTR) return {tcp::socket::wait_write, {}, 0};
  return {{}, system_failure(errno), 0};
}

attempt stream::impl::tls_result(int returned, std::size_t bytes) {
  if (returned == 1) return {{}, {}, bytes};
  switch (SSL_get_error(ssl.get(), returned)) {
    case SSL_ERROR_WANT_READ:
      return {tcp::socket::wait_read, {}, 0};
    case SSL_ERROR_WANT_WRITE:
      return {tcp::socket::wait_write, {}, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {{}, asio::error::eof, 0};
    default:  // SSL, SYSCALL; the others belong to callbacks we do not use
      broken = true;
      return {{}, tls_failure(), 0};
  }
}

error_code stream::impl::tls_failure() {
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  const auto said = in_words(take_openssl_error());
  const bool shaking = SSL_is_init_finished(ssl.get()) == 0;
  const auto first = through.first_byte.value_or(tls_handshake);
  if (shaking && first != tls_handshake && first != tls_alert)
    return fail(stream_error::not_tls, "the answer is not TLS");
  if (through.error != 0) return system_failure(through.error);
  if (through.ended) return fail(stream_error::truncated, "connection ended without a TLS close");
  if (auto verdict = judge_peer()) return verdict;
  const bool refused =
      refuses_our_certificate(reason) ||
      (findings.asked_for_certificate && reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
  if (refused) return fail(stream_error::certificate_required, said);
  return fail(stream_error::tls_failed, said);
}

error_code stream::impl::system_failure(int error) {
  if (is_silence(error)) return fail(stream_error::peer_silent, std::strerror(error));
  return {error, boost::system::system_category()};
}

error_code stream::impl::fail(stream_error what, std::string in_other_words) {
  words = std::move(in_other_words);
  return what;
}

void stream::impl::say_goodbye() noexcept {
  if (!ssl || broken || SSL_is_init_finished(ssl.get()) == 0) return;
  ERR_clear_error();
  SSL_shutdown(ssl.get());
  ERR_clear_error();
  // What is unread at close makes the kernel send RST, and the peer's last read fail.
  char unread[4096];
  for (int round = 0; round < 16; ++round)
    if (::recv(through.descriptor, unread, sizeof unread, MSG_DONTWAIT) <= 0) return;
}

stream::stream(tcp::socket socket) : impl_(std::make_unique<impl>(std::move(socket))) {}

stream::~stream() {
  if (impl_) close();
}

stream::stream(stream&&) noexcept = default;

stream& stream::operator=(stream&& other) noexcept {
  if (impl_) close();
  impl_ = std::move(other.impl_);
  return *this;
}

asio::awaitable<stream::status> stream::client_handshake(tls_context context, tls_session session) {
  if (!impl_->ssl) {
    impl_->begin(std::move(context), true);
    impl_->offer(session);
  }
  for (;;) {
    const auto now = impl_->shake_hands();
    if (!now.wait_for) co_return now.error;
    auto [error] = co_await impl_->socket.async_wait(*now.wait_for, nothrow);
    if (error) co_return error;
  }
}

asio::awaitable<stream::status> stream::server_handshake(tls_context context) {
  if (!impl_->ssl) impl_->begin(std::move(context), false);
  for (;;) {
    const auto now = impl_->shake_hands();
    if (!now.wait_for) co_return now.error;
    auto [error] = co_await impl_->socket.async_wait(*now.wait_for, nothrow);
    if (error) co_return error;
  }
}

asio::awaitable<stream::transferred> stream::read_some(asio::mutable_buffer into) {
  for (;;) {
    const auto now = impl_->read(into.data(), into.size());
    if (!now.wait_for) co_return transferred(now.error, now.bytes);
    auto [error] = co_await impl_->socket.async_wait(*now.wait_for, nothrow);
    if (error) co_return transferred(error, 0);
  }
}

asio::awaitable<stream::status> stream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto now = impl_->write(bytes);
    bytes.remove_prefix(now.bytes);
    if (now.error) co_return now.error;
    if (!now.wait_for) continue;
    auto [error] = co_await impl_->socket.async_wait(*now.wait_for, nothrow);
    if (error) co_return error;
  }
  co_return error_code();
}

asio::awaitable<stream::status> stream::watch() {
  for (;;) {
    const auto now = impl_->peek();
    if (!now.wait_for) co_return now.error;
    auto [error] = co_await impl_->socket.async_wait(*now.wait_for, nothrow);
    if (error) co_return error;
  }
}

void stream::close() noexcept {
  if (!is_open()) return;
  impl_->say_goodbye();
  drop();
}

void stream::reset() noexcept {
  if (!is_open()) return;
  error_code ignored;
  impl_->socket.set_option(asio::socket_base::linger(true, 0), ignored);
  drop();
}

void stream::drop() noexcept {
  // Else the library would forget the session with the connection.
  if (impl_->ssl) SSL_set_shutdown(impl_->ssl.get(), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  error_code ignored;
  impl_->socket.close(ignored);
  impl_->through.descriptor = -1;
}

void stream::cancel() noexcept {
  error_code ignored;
  impl_->socket.cancel(ignored);
}

bool stream::is_open() const noexcept {
  return impl_->socket.is_open();
}
bool stream::is_tls() const noexcept {
  return impl_->ssl != nullptr;
}
bool stream::resumed() const noexcept {
  return impl_->ssl && SSL_session_reused(impl_->ssl.get()) == 1;
}

std::optional<std::chrono::system_clock::time_point> stream::peer_expiry() const {
  auto* certificate = impl_->ssl ? SSL_get0_peer_certificate(impl_->ssl.get()) : nullptr;
  if (!certificate) return std::nullopt;
  return to_time(X509_get0_notAfter(certificate));
}

std::string stream::peer_common_name() const {
  auto* certificate = impl_->ssl ? SSL_get0_peer_certificate(impl_->ssl.get()) : nullptr;
  return certificate ? common_name(X509_get_subject_name(certificate)) : std::string();
}

const std::string& stream::failure() const noexcept {
  return impl_->words;
}
std::uint64_t stream::bytes_received() const noexcept {
  return impl_->through.received;
}
tcp::socket& stream::socket() noexcept {
  return impl_->socket;
}

std::optional<kernel_view> stream::kernel() const noexcept {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(impl_->through.descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
    return std::nullopt;
  return kernel_view{.rtt = std::chrono::microseconds(info.tcpi_rtt),
                     .unacknowledged = info.tcpi_unacked,
                     .retransmitted = info.tcpi_total_retrans,
                     .since_last_ack = std::chrono::milliseconds(info.tcpi_last_ack_recv)};
}

}  // namespace kubelane::net
