#include "config/kubeconfig.hpp"

#include <cstdint>
#include <cstdlib>

/// A kubeconfig is either read or refused in one line; text and file of one thing exclude each
/// other.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = kubelane::config::parse_kubeconfig(
      {reinterpret_cast<const char*>(data), size}, "/etc/kubernetes");
  if (!result) {
    const auto& why = result.error();
    if (why.empty() || why.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto both = [](const std::string& text, const std::string& file) {
    return !text.empty() && !file.empty();
  };
  if (both(result->ca_pem, result->ca_file) || both(result->key_pem, result->key_file) ||
      both(result->certificate_pem, result->certificate_file) ||
      both(result->token, result->token_file))
    std::abort();
  return 0;
}
