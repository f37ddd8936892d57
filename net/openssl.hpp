#pragma once

// Inside net/ and demo/ only: what the TLS files share of OpenSSL.

#include "net/tls.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::net {

/// `unique_ptr` of an OpenSSL object.
template <auto Free>
struct openssl_free {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
using ssl_ptr = std::unique_ptr<SSL, openssl_free<SSL_free>>;
using ssl_ctx_ptr = std::unique_ptr<SSL_CTX, openssl_free<SSL_CTX_free>>;
using session_ptr = std::unique_ptr<SSL_SESSION, openssl_free<SSL_SESSION_free>>;
using x509_ptr = std::unique_ptr<X509, openssl_free<X509_free>>;
using key_ptr = std::unique_ptr<EVP_PKEY, openssl_free<EVP_PKEY_free>>;
using bio_ptr = std::unique_ptr<BIO, openssl_free<BIO_free>>;

/// The newest error of the library in words; empties its queue.
std::string take_openssl_error();
/// Every certificate of a PEM text. Nothing that is no certificate is an error but a broken one,
/// which ends the list.
std::vector<x509_ptr> parse_certificates(std::string_view pem);
std::chrono::system_clock::time_point to_time(const ASN1_TIME* value);
/// Common name of a subject or issuer; empty without one.
std::string common_name(const X509_NAME* of);
/// DNS names and addresses that a certificate is for, at most three: `cp1, 10.0.0.1 and more`.
std::string names_in_words(X509* certificate);

struct tls_context::impl {
  ssl_ctx_ptr context;
  verify_peer verify = verify_peer::none;
  std::string server_name;  // empty on a server
};

struct tls_session::impl {
  session_ptr session;
  std::optional<tls_context> context;                    // it was made under this one
  std::chrono::system_clock::time_point full_handshake;  // the one it goes back to
};

/// What one handshake found out about its peer; an SSL's app data.
struct peer_findings {
  std::string identity;  ///< first problem with CA or name, in words
  std::string validity;  ///< first problem with the dates, in words
  bool asked_for_certificate = false;
  std::optional<tls_context> context;          ///< in force
  std::shared_ptr<tls_session::impl> session;  // kept up to date; shared as tls_session says
};

}  // namespace kubelane::net
