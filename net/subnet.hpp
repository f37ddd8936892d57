#pragma once

#include <boost/asio/ip/address.hpp>

#include <string>
#include <string_view>

namespace kubelane::net {

/// A range of IP addresses as CIDR writes it: `10.0.0.0/8`, `fd00::/8`. An address alone is a range
/// of one. IPv4-mapped addresses count as the IPv4 addresses they stand for.
class subnet {
 public:
  /// `prefix` is at most the address' own 32 or 128 bits; bits beyond it do not count.
  subnet(const boost::asio::ip::address& base, unsigned prefix);

  bool contains(const boost::asio::ip::address& address) const noexcept;
  /// The first address of the range, and how many bits all of it share.
  const boost::asio::ip::address& base() const noexcept { return base_; }
  unsigned prefix() const noexcept { return prefix_; }

  friend bool operator==(const subnet&, const subnet&) = default;

 private:
  boost::asio::ip::address base_;
  unsigned prefix_;
};

std::string to_string(const subnet& value);

}  // namespace kubelane::net
