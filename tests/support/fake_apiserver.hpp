#pragma once

#include "demo/apiserver_thread.hpp"
#include "demo/certificates.hpp"
#include "net/tls.hpp"

#include <string>

namespace kubelane::test {

/// One authority for the whole test process.
const demo::authority& test_authority();
/// Its certificate for an API server, the same for all; keys cost time.
const demo::identity& test_identity();
/// `test_identity` as a server shows it.
net::server_tls test_tls();
/// A certificate of `from` as a server shows it.
net::server_tls server_tls(const demo::authority& from, const demo::certificate_request& wanted);

/// `127.0.0.1`, any port, `test_tls`.
demo::apiserver_options apiserver_options(std::string name);
/// What a client needs to verify it.
net::client_tls client_settings();

/// An API server with these defaults, on a thread of its own.
class fake_apiserver : public demo::apiserver_thread {
 public:
  explicit fake_apiserver(std::string name = "cp1")
      : apiserver_thread(apiserver_options(std::move(name))) {}
  explicit fake_apiserver(demo::apiserver_options options) : apiserver_thread(std::move(options)) {}
};

}  // namespace kubelane::test
