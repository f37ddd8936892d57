#include "net/tls.hpp"

#include "net/openssl.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/pem.h>

#include <cassert>
#include <ctime>

namespace kubelane::net {
namespace {

namespace asio = boost::asio;
using context_result = boost::system::result<tls_context, std::string>;

// Boost's categories are never deleted through their base.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-virtual-dtor"
class stream_category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "stream"; }
  std::string message(int value) const override {
    switch (static_cast<stream_error>(value)) {
      case stream_error::truncated:
        return "connection ended without a TLS close";
      case stream_error::peer_silent:
        return "the host stopped answering";
      case stream_error::not_tls:
        return "the answer is not TLS";
      case stream_error::wrong_certificate:
        return "certificate does not verify";
      case stream_error::bad_validity:
        return "certificate expired or not yet valid";
      case stream_error::certificate_required:
        return "a client certificate is required";
      case stream_error::tls_failed:
        return "TLS failed";
    }
    return "unknown";
  }
};

#pragma GCC diagnostic pop

bool is_validity_problem(int code) {
  return code == X509_V_ERR_CERT_HAS_EXPIRED || code == X509_V_ERR_CERT_NOT_YET_VALID;
}

std::string iso_time(const ASN1_TIME* value) {
  const auto seconds = std::chrono::system_clock::to_time_t(to_time(value));
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[sizeof "2000-01-01T00:00:00Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string describe(int code, X509* certificate, const SSL* ssl) {
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "certificate expired " + iso_time(X509_get0_notAfter(certificate));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "certificate not valid before " + iso_time(X509_get0_notBefore(certificate));
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: {
      const auto* context =
          static_cast<const tls_context::impl*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
      const auto names = names_in_words(certificate);
      return "certificate is for " + (names.empty() ? "no name" : names) + ", not for " +
             context->server_name;
    }
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT: {
      const auto issuer = common_name(X509_get_issuer_name(certificate));
      return "certificate signed by another CA than ours" +
             (issuer.empty() ? "" : " (" + issuer + ")");
    }
    default:
      return std::string("certificate: ") + X509_verify_cert_error_string(code);
  }
}

peer_findings& findings_of(const SSL* ssl) {
  auto* findings = static_cast<peer_findings*>(SSL_get_app_data(ssl));
  assert(findings);
  return *findings;
}

// Notes every problem and goes on, so that the handshake completes and can be ended in order; the
// stream refuses the peer afterwards.
int note_problem(int verified, X509_STORE_CTX* store) {
  if (verified == 1) return 1;
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const int code = X509_STORE_CTX_get_error(store);
  auto& findings = findings_of(ssl);
  auto& place = is_validity_problem(code) ? findings.validity : findings.identity;
  if (place.empty()) place = describe(code, X509_STORE_CTX_get_current_cert(store), ssl);
  return 1;
}

// Accepts any certificate: it was asked for, not required.
int accept_any(int, X509_STORE_CTX*) {
  return 1;
}

int note_certificate_request(SSL* ssl, void*) {
  findings_of(ssl).asked_for_certificate = true;
  return 1;
}

int keep_session(SSL* ssl, SSL_SESSION* session) {
  auto& findings = findings_of(ssl);
  if (!findings.session || !findings.identity.empty() || !findings.validity.empty()) return 0;
  auto& kept = *findings.session;
  const bool known_age =
      SSL_session_reused(ssl) == 1 && kept.session && kept.context == findings.context;
  if (!known_age) kept.full_handshake = std::chrono::system_clock::now();
  kept.context = findings.context;
  kept.session.reset(session);
  return 1;
}

int choose_http1(SSL*, const unsigned char** chosen, unsigned char* length,
                 const unsigned char* offered, unsigned offered_length, void*) {
  static constexpr unsigned char ours[] = "\x08http/1.1";
  unsigned char* match = nullptr;
  if (SSL_select_next_proto(&match, length, ours, sizeof ours - 1, offered, offered_length) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *chosen = match;
  return SSL_TLSEXT_ERR_OK;
}

int version_number(tls_version version) {
  switch (version) {
    case tls_version::tls1_2:
      return TLS1_2_VERSION;
    case tls_version::tls1_3:
      return TLS1_3_VERSION;
  }
  return 0;
}

std::string use_identity(SSL_CTX* context, const std::string& certificate_pem,
                         const std::string& key_pem) {
  const auto chain = parse_certificates(certificate_pem);
  if (chain.empty()) return "holds no certificate";
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) return take_openssl_error();
  for (std::size_t i = 1; i < chain.size(); ++i)
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) return take_openssl_error();
  const bio_ptr text(BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())));
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const key_ptr key(PEM_read_bio_PrivateKey(text.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!key) return "holds no private key (or one with a password)";
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return "key does not fit certificate";
  }
  return {};
}

std::string trust(SSL_CTX* context, const std::string& ca_pem) {
  const auto authorities = parse_certificates(ca_pem);
  if (authorities.empty()) return "holds no certificate";
  auto* store = SSL_CTX_get_cert_store(context);
  for (const auto& authority : authorities) X509_STORE_add_cert(store, authority.get());
  // As Kubernetes' clients do: each given certificate is trusted, also an intermediate one.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return {};
}

std::string expect_name(SSL_CTX* context, const std::string& name) {
  if (name.empty()) return "server_name is empty";
  auto* parameters = SSL_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_hostflags(
      parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  error_code not_ip;
  asio::ip::make_address(name, not_ip);
  const int done = not_ip ? X509_VERIFY_PARAM_set1_host(parameters, name.data(), name.size())
                          : X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str());
  return done == 1 ? std::string() : "server_name " + name + " is no DNS name and no address";
}

ssl_ctx_ptr new_context(const SSL_METHOD* method) {
  ssl_ctx_ptr context(SSL_CTX_new(method));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  return context;
}

std::string prepare_client(tls_context::impl& made, const client_tls& settings) {
  auto* context = made.context.get();
  static constexpr unsigned char protocols[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols - 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  SSL_CTX_set_cert_cb(context, note_certificate_request, nullptr);
  SSL_CTX_set_app_data(context, &made);
  std::string wrong;
  if (!settings.certificate_pem.empty())
    wrong = use_identity(context, settings.certificate_pem, settings.key_pem);
  if (settings.verify == verify_peer::none || !wrong.empty()) return wrong;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, note_problem);
  wrong = trust(context, settings.ca_pem);
  if (wrong.empty() && settings.verify == verify_peer::full)
    wrong = expect_name(context, settings.server_name);
  return wrong;
}

std::string prepare_server(SSL_CTX* context, const server_tls& settings) {
  SSL_CTX_set_min_proto_version(context, version_number(settings.lowest));
  SSL_CTX_set_max_proto_version(context, version_number(settings.highest));
  SSL_CTX_set_alpn_select_cb(context, choose_http1, nullptr);
  static constexpr unsigned char id[] = "kubelane";
  SSL_CTX_set_session_id_context(context, id, sizeof id - 1);
  if (!settings.ciphers.empty() && SSL_CTX_set_cipher_list(context, settings.ciphers.c_str()) != 1)
    return take_openssl_error();
  auto wrong = use_identity(context, settings.certificate_pem, settings.key_pem);
  if (wrong.empty() && !settings.client_ca_pem.empty())
    wrong = trust(context, settings.client_ca_pem);
  switch (settings.client) {
    case client_certificate::ignored:
      break;
    case client_certificate::asked:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER, accept_any);
      break;
    case client_certificate::required:
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      break;
  }
  return wrong;
}

}  // namespace

error_code make_error_code(stream_error value) noexcept {
  static const stream_category category;
  return {static_cast<int>(value), category};
}

context_result tls_context::client(const client_tls& settings) {
  auto made = std::make_shared<impl>();
  made->context = new_context(TLS_client_method());
  made->verify = settings.verify;
  made->server_name = settings.server_name;
  auto wrong = prepare_client(*made, settings);
  if (!wrong.empty()) return wrong;
  return tls_context(std::move(made));
}

context_result tls_context::server(const server_tls& settings) {
  auto made = std::make_shared<impl>();
  made->context = new_context(TLS_server_method());
  auto wrong = prepare_server(made->context.get(), settings);
  if (!wrong.empty()) return wrong;
  return tls_context(std::move(made));
}

tls_session::tls_session() : shared_(std::make_shared<impl>()) {}

void tls_session::forget() {
  shared_->session.reset();
}

}  // namespace kubelane::net
