#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

namespace kubelane::net {

using boost::system::error_code;

/// What can go wrong on a stream besides what the operating system reports.
enum class stream_error {
  truncated = 1,  ///< TLS: the connection ended without close_notify
  peer_silent,    ///< the kernel gave the peer's host up: keep-alive, user time-out, unreachable
  not_tls,        ///< the first bytes of the answer are not TLS
  wrong_certificate,     ///< does not verify: CA or name
  bad_validity,          ///< verifies, but has expired or is not valid yet
  certificate_required,  ///< the peer wants a client certificate, or refuses ours
  tls_failed,            ///< no common version or cipher, a broken record, any other alert
};

error_code make_error_code(stream_error value) noexcept;

enum class verify_peer {
  full,  ///< CA and name
  ca,    ///< CA alone
  none,
};

enum class tls_version { tls1_2, tls1_3 };

/// What a client expects and shows. PEM text, not file names.
struct client_tls {
  verify_peer verify = verify_peer::full;
  std::string ca_pem;  ///< one certificate or more; each is trusted as it is. Unused with none
  std::string certificate_pem;  ///< the client's own, leaf first; empty: none is shown
  std::string key_pem;          ///< of `certificate_pem`
  std::string server_name;      ///< DNS name or IP address; a DNS name is also sent as SNI
};

enum class client_certificate { ignored, asked, required };

/// What a server shows and accepts.
struct server_tls {
  std::string certificate_pem;  ///< leaf first
  std::string key_pem;
  std::string client_ca_pem;  ///< verifies what `required` clients show
  client_certificate client = client_certificate::ignored;
  tls_version lowest = tls_version::tls1_2;
  tls_version highest = tls_version::tls1_3;
  std::string ciphers;  ///< of TLS 1.2, in OpenSSL's syntax; empty: the library's choice
};

/// Settings of TLS handshakes, made once and shared by many. A copy is the same context.
/// TLS 1.2 at least, ALPN `http/1.1`.
class tls_context {
 public:
  /// Fails with what is wrong in words: `holds no certificate`, `key does not fit certificate`.
  static boost::system::result<tls_context, std::string> client(const client_tls& settings);
  static boost::system::result<tls_context, std::string> server(const server_tls& settings);

  friend bool operator==(const tls_context&, const tls_context&) = default;

  struct impl;  // for stream.cpp
  const impl& internals() const noexcept { return *shared_; }

 private:
  explicit tls_context(std::shared_ptr<const impl> shared) : shared_(std::move(shared)) {}
  std::shared_ptr<const impl> shared_;  // shared: connections outlive a change of credentials
};

/// The resumable session of one peer. Give the same one to every handshake with it: it is offered
/// if it was made under the same context, is younger than an hour and its certificate still valid,
/// and replaced by what the peer hands out. A copy is the same session.
///
/// An hour, so that a certificate renewed on the peer is noticed.
class tls_session {
 public:
  tls_session();
  /// The next handshake is a full one.
  void forget();

  struct impl;  // for stream.cpp
  const std::shared_ptr<impl>& internals() const noexcept { return shared_; }

 private:
  std::shared_ptr<impl> shared_;  // shared: tickets arrive for as long as a connection lives
};

}  // namespace kubelane::net

template <>
struct boost::system::is_error_code_enum<kubelane::net::stream_error> : std::true_type {};
