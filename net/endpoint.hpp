#pragma once

#include <boost/asio/ip/address.hpp>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kubelane::net {

/// An IP address and a TCP port. Equality is an upstream's identity across reloads, so an
/// IPv4-mapped IPv6 address (`::ffff:10.0.0.1`) is stored as the IPv4 address it stands for.
class endpoint {
 public:
  endpoint() = default;
  endpoint(boost::asio::ip::address address, std::uint16_t port);

  const boost::asio::ip::address& address() const noexcept { return address_; }
  std::uint16_t port() const noexcept { return port_; }

  friend auto operator<=>(const endpoint&, const endpoint&) = default;

 private:
  boost::asio::ip::address address_;
  std::uint16_t port_ = 0;
};

/// A host as written, not resolved: an IP address or a DNS name, and a port.
struct host_port {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
  friend auto operator<=>(const host_port&, const host_port&) = default;
};

/// Splits `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; the port is
/// `default_port` if left out. Nothing if it is none of these, or the port is not in 1..65535.
std::optional<host_port> parse_host_port(std::string_view text, std::uint16_t default_port);

/// The same, for text that must hold an IP address. Zone identifiers (`fe80::1%eth0`) are accepted.
std::optional<endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port);

/// Shortest form, IPv6 in brackets: `10.0.0.1:6443`, `[fd00::1]:6443`.
std::string to_string(const endpoint& value);
std::string to_string(const host_port& value);

/// 127.0.0.0/8 or ::1.
bool is_loopback(const endpoint& value) noexcept;

}  // namespace kubelane::net
