#include "net/openssl.hpp"

#include <boost/asio/ip/address.hpp>
#include <openssl/pem.h>

#include <algorithm>
#include <ctime>

namespace kubelane::net {
namespace {

namespace asio = boost::asio;

using names_ptr = std::unique_ptr<GENERAL_NAMES, openssl_free<GENERAL_NAMES_free>>;

// A peer's text, fit for a log line.
std::string as_shown(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string result(text.substr(0, longest));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string in_words(const GENERAL_NAME& name) {
  int type = 0;
  const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(&name, &type));
  if (type != GEN_DNS && type != GEN_IPADD) return "?";
  const auto* data = ASN1_STRING_get0_data(value);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
  if (type == GEN_DNS) return as_shown({reinterpret_cast<const char*>(data), size});
  asio::ip::address_v4::bytes_type v4;
  asio::ip::address_v6::bytes_type v6;
  if (size == v4.size()) {
    std::copy_n(data, size, v4.begin());
    return asio::ip::address_v4(v4).to_string();
  }
  if (size != v6.size()) return "?";
  std::copy_n(data, size, v6.begin());
  return asio::ip::address_v6(v6).to_string();
}

}  // namespace

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

std::string common_name(const X509_NAME* of) {
  char text[256] = "";
  X509_NAME_get_text_by_NID(of, NID_commonName, text, sizeof text);
  return as_shown(text);
}

std::string names_in_words(X509* certificate) {
  constexpr int most = 3;
  const names_ptr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  const int count = names ? sk_GENERAL_NAME_num(names.get()) : 0;
  std::string result;
  for (int i = 0; i < std::min(count, most); ++i)
    result += (i > 0 ? ", " : "") + in_words(*sk_GENERAL_NAME_value(names.get(), i));
  return result + (count > most ? " and more" : "");
}

}  // namespace kubelane::net
