#include "net/endpoint.hpp"

#include <charconv>

namespace kubelane::net {
namespace {

namespace ip = boost::asio::ip;

std::optional<std::uint16_t> parse_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < 1 || value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

std::string with_port(const std::string& host, std::uint16_t port) {
  const auto bracketed = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return bracketed + ":" + std::to_string(port);
}

bool is_ip(std::string_view text) {
  boost::system::error_code error;
  ip::make_address(std::string(text), error);
  return !error;
}

}  // namespace

endpoint::endpoint(ip::address address, std::uint16_t port) : address_(address), port_(port) {
  if (address_.is_v6() && address_.to_v6().is_v4_mapped())
    address_ = ip::make_address_v4(ip::v4_mapped, address_.to_v6());
}

std::optional<host_port> parse_host_port(std::string_view text, std::uint16_t default_port) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '[') {
    const auto close = text.find(']');
    if (close == std::string_view::npos || !is_ip(text.substr(1, close - 1))) return std::nullopt;
    host_port result{std::string(text.substr(1, close - 1)), default_port};
    const auto rest = text.substr(close + 1);
    if (rest.empty()) return result;
    if (rest.front() != ':') return std::nullopt;
    const auto port = parse_port(rest.substr(1));
    if (!port) return std::nullopt;
    result.port = *port;
    return result;
  }
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return host_port{std::string(text), default_port};
  if (text.find(':', colon + 1) != std::string_view::npos) {
    if (!is_ip(text)) return std::nullopt;
    return host_port{std::string(text), default_port};
  }
  const auto port = parse_port(text.substr(colon + 1));
  if (!port || colon == 0) return std::nullopt;
  return host_port{std::string(text.substr(0, colon)), *port};
}

std::optional<endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  const auto parts = parse_host_port(text, default_port);
  if (!parts) return std::nullopt;
  boost::system::error_code error;
  const auto address = ip::make_address(parts->host, error);
  if (error) return std::nullopt;
  return endpoint(address, parts->port);
}

std::string to_string(const endpoint& value) {
  return with_port(value.address().to_string(), value.port());
}

std::string to_string(const host_port& value) {
  return with_port(value.host, value.port);
}

bool is_loopback(const endpoint& value) noexcept {
  return value.address().is_loopback();
}

}  // namespace kubelane::net
