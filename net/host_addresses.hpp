#pragma once

#include <boost/asio/ip/address.hpp>

#include <vector>

namespace kubelane::net {

/// Every IP address of this host's interfaces now. Empty if the kernel does not say.
std::vector<boost::asio::ip::address> host_addresses();

}  // namespace kubelane::net
