#include "demo/certificates.hpp"

#include "net/openssl.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>

#include <stdexcept>

namespace kubelane::demo {
namespace {

using net::key_ptr;
using net::x509_ptr;
using extension_ptr = std::unique_ptr<X509_EXTENSION, net::openssl_free<X509_EXTENSION_free>>;

void require(bool done) {
  if (!done) throw std::runtime_error("certificate: " + net::take_openssl_error());
}

key_ptr make_key(key_kind kind) {
  key_ptr key;
  switch (kind) {
    case key_kind::rsa_2048:
      key.reset(EVP_RSA_gen(2048));
      break;
    case key_kind::rsa_4096:
      key.reset(EVP_RSA_gen(4096));
      break;
    case key_kind::p256:
      key.reset(EVP_EC_gen("P-256"));
      break;
  }
  require(key != nullptr);
  return key;
}

template <class Write>
std::string to_pem(const Write& write) {
  const net::bio_ptr out(BIO_new(BIO_s_mem()));
  require(write(out.get()) == 1);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string to_pem(X509* certificate) {
  return to_pem([=](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string to_pem(EVP_PKEY* key) {
  return to_pem([=](BIO* out) {
    return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void add_extension(X509* to, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  const extension_ptr extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  require(extension && X509_add_ext(to, extension.get(), -1) == 1);
}

std::string alternative_names(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names) {
    boost::system::error_code not_ip;
    boost::asio::ip::make_address(name, not_ip);
    if (!result.empty()) result += ',';
    result.append(not_ip ? "DNS:" : "IP:").append(name);
  }
  return result;
}

x509_ptr blank(const certificate_request& wanted, EVP_PKEY* key) {
  x509_ptr certificate(X509_new());
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), wanted.valid_from.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), wanted.valid_until.count());
  X509_set_pubkey(certificate.get(), key);
  const auto* name = reinterpret_cast<const unsigned char*>(wanted.common_name.c_str());
  X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate.get()), NID_commonName,
                             MBSTRING_UTF8, name, -1, -1, 0);
  return certificate;
}

}  // namespace

struct authority::impl {
  key_ptr key;
  x509_ptr certificate;
};

authority::authority(const std::string& common_name) : impl_(std::make_unique<impl>()) {
  const certificate_request self{.common_name = common_name, .names = {}};
  impl_->key = make_key(self.key);
  impl_->certificate = blank(self, impl_->key.get());
  auto* certificate = impl_->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,digitalSignature");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  require(X509_sign(certificate, impl_->key.get(), EVP_sha256()) > 0);
  certificate_pem_ = to_pem(certificate);
}

authority::~authority() = default;
authority::authority(authority&&) noexcept = default;

identity authority::issue(const certificate_request& wanted) const {
  const auto key = make_key(wanted.key);
  const auto certificate = blank(wanted, key.get());
  auto* issuer = impl_->certificate.get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer));
  add_extension(certificate.get(), issuer, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(certificate.get(), issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  if (!wanted.names.empty())
    add_extension(certificate.get(), issuer, NID_subject_alt_name, alternative_names(wanted.names));
  require(X509_sign(certificate.get(), impl_->key.get(), EVP_sha256()) > 0);
  return {to_pem(certificate.get()), to_pem(key.get())};
}

certificate_request apiserver_certificate(const std::string& name) {
  return {.common_name = "kube-apiserver",
          .names = {"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", name,
                    "127.0.0.1", "::1"}};
}

}  // namespace kubelane::demo
