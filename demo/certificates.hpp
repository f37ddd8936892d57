#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::demo {

enum class key_kind { rsa_2048, rsa_4096, p256 };

/// A certificate and its key, PEM.
struct identity {
  std::string certificate_pem;
  std::string key_pem;
};

struct certificate_request {
  std::string common_name;
  std::vector<std::string> names;  ///< subject alternative names: DNS names and IP addresses
  std::chrono::seconds valid_from = std::chrono::hours(-1);   ///< from now
  std::chrono::seconds valid_until = std::chrono::hours(24);  ///< from now
  key_kind key = key_kind::rsa_2048;
};

/// A certificate authority made when constructed, which takes a tenth of a second or so.
class authority {
 public:
  explicit authority(const std::string& common_name = "kubelane demo CA");
  ~authority();
  authority(authority&&) noexcept;

  const std::string& certificate_pem() const noexcept { return certificate_pem_; }
  /// Good for servers and clients.
  identity issue(const certificate_request& wanted) const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
  std::string certificate_pem_;
};

/// What kubespray puts into an API server's certificate, and the loopbacks.
certificate_request apiserver_certificate(const std::string& name);

}  // namespace kubelane::demo
