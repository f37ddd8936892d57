#include "net/openssl.hpp"

#include <openssl/pem.h>

#include <ctime>

namespace kubelane::net {

std::string take_openssl_error() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(code);
  return reason ? reason : "unknown TLS error";
}

std::vector<x509_ptr> parse_certificates(std::string_view pem) {
  std::vector<x509_ptr> result;
  const bio_ptr text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  while (auto* certificate = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr))
    result.emplace_back(certificate);
  ERR_clear_error();  // the end of the text is an error to the library
  return result;
}

std::chrono::system_clock::time_point to_time(const ASN1_TIME* value) {
  std::tm parts{};
  if (!value || ASN1_TIME_to_tm(value, &parts) != 1) return {};
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

std::string common_name(X509* certificate) {
  char text[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, text, sizeof text);
  return text;
}

}  // namespace kubelane::net
