#include "net/certificate_dates.hpp"

#include "net/openssl.hpp"

namespace kubelane::net {

std::vector<certificate_dates> read_certificate_dates(std::string_view pem) {
  std::vector<certificate_dates> result;
  for (const auto& each : parse_certificates(pem))
    result.push_back({common_name(X509_get_subject_name(each.get())),
                      to_time(X509_get0_notBefore(each.get())),
                      to_time(X509_get0_notAfter(each.get()))});
  return result;
}

}  // namespace kubelane::net
