#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::net {

struct certificate_dates {
  std::string common_name;  ///< of its subject; empty without one
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};

/// Of every certificate in a PEM text, in its order. What is no certificate is passed over.
std::vector<certificate_dates> read_certificate_dates(std::string_view pem);

}  // namespace kubelane::net
