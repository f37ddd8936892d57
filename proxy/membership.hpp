#pragma once

#include "config/config.hpp"
#include "net/endpoint.hpp"
#include "proxy/upstream_pool.hpp"

#include <boost/asio/ip/address.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kubelane::proxy {

/// What asking the resolver for one name gave.
struct lookup {
  std::string host;
  /// Nothing: no answer, or an error; an empty list counts as that too.
  std::optional<std::vector<boost::asio::ip::address>> addresses;
};

/// An address that a name has, or had a moment ago.
struct known_address {
  std::string host;
  boost::asio::ip::address address;
  int absences = 0;  ///< answers in a row without it
};

/// Where this process itself listens.
struct own_listeners {
  std::vector<net::endpoint> listeners;
  /// This host's addresses (`getifaddrs`): what a wildcard listener stands for.
  std::vector<boost::asio::ip::address> host_addresses;
};

struct membership_result {
  std::vector<wanted_upstream> wanted;  ///< in the order of the configuration, addresses sorted
  std::vector<std::string> warnings;    ///< the same text while the same is wrong
  std::vector<known_address> known;     ///< to be given back next time
};

/// Turns configured upstreams and what the resolver said into the set of upstreams. Pure.
///
/// An IP address is an upstream of its name. A DNS name is one upstream `name/address` for each of
/// its addresses, also if there is just one, and a placeholder `name` while it has none. `known` is
/// the previous result's; names without a lookup in `lookups` keep what is known. An address is
/// gone after three answers in a row without it; a failed lookup or an empty answer changes
/// nothing. The same endpoint twice is one upstream, the first, with a warning; one that is an own
/// listener is left out with a warning.
membership_result resolve_members(const std::vector<config::upstream>& configured,
                                  const std::vector<lookup>& lookups, const own_listeners& own,
                                  const std::vector<known_address>& known);

}  // namespace kubelane::proxy
