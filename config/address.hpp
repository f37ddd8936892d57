#pragma once

#include "net/endpoint.hpp"
#include "net/subnet.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace kubelane::config {

/// Why a text is not the address it should be, to follow the quoted text.
struct address_error {
  std::string reason;
};

/// An API server's address: an IP address or a DNS name, port 6443 if left out. Canonical: an
/// IPv4-mapped address is the IPv4 address, a name is in lower case without a final dot.
boost::system::result<net::host_port, address_error> parse_upstream_address(std::string_view text);

/// Where to listen: an IP address and a port.
boost::system::result<net::endpoint, address_error> parse_listen_address(std::string_view text);

/// A range of IP addresses as 10.0.0.0/8 or fd00::/8, or one address. Bits beyond the prefix are
/// refused: they are a typing error.
boost::system::result<net::subnet, address_error> parse_subnet(std::string_view text);

/// A DNS name as resolvers take it. One that ends in a number would be taken for an IPv4 address.
/// Source: RFC 1123 section 2.1, plus `_`, which is in use.
bool is_dns_name(std::string_view text);

}  // namespace kubelane::config
