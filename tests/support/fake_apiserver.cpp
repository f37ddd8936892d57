#include "tests/support/fake_apiserver.hpp"

namespace kubelane::test {

const demo::authority& test_authority() {
  static const demo::authority authority("kubelane test CA");
  return authority;
}

const demo::identity& test_identity() {
  static const auto identity = test_authority().issue(demo::apiserver_certificate("cp1"));
  return identity;
}

net::server_tls test_tls() {
  net::server_tls result;
  result.certificate_pem = test_identity().certificate_pem;
  result.key_pem = test_identity().key_pem;
  return result;
}

net::server_tls server_tls(const demo::authority& from, const demo::certificate_request& wanted) {
  const auto identity = from.issue(wanted);
  net::server_tls result;
  result.certificate_pem = identity.certificate_pem;
  result.key_pem = identity.key_pem;
  return result;
}

net::client_tls client_settings() {
  net::client_tls result;
  result.ca_pem = test_authority().certificate_pem();
  result.server_name = "kubernetes.default.svc";
  return result;
}

demo::apiserver_options apiserver_options(std::string name) {
  demo::apiserver_options result;
  result.name = std::move(name);
  result.tls = test_tls();
  return result;
}

}  // namespace kubelane::test
