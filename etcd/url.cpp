#include "etcd/url.hpp"

#include <algorithm>
#include <cctype>

namespace kubelane::etcd {
namespace {

constexpr std::uint16_t client_port = 2379;

std::string no_url(std::string_view text, const std::string& why) {
  return "`" + std::string(text) + "` is no endpoint: " + why;
}

}  // namespace

boost::system::result<url, std::string> parse_url(std::string_view text) {
  url result;
  auto rest = text;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    result.tls = false;
  } else if (rest.find("://") != rest.npos || rest.empty()) {
    return no_url(text, "write https://HOST:2379");
  } else {
    return no_url(text, "write https://" + std::string(rest) +
                            ", or http:// if that member serves without TLS");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find('/') != rest.npos) return no_url(text, "it ends with the port, as in :2379");
  auto at = net::parse_host_port(rest, client_port);
  if (!at) return no_url(text, "write https://HOST:PORT, IPv6 in brackets");
  result.at = std::move(*at);
  std::transform(result.at.host.begin(), result.at.host.end(), result.at.host.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

std::string to_string(const url& of) {
  return (of.tls ? "https://" : "http://") + net::to_string(of.at);
}

}  // namespace kubelane::etcd
