#pragma once

#include "config/config.hpp"

#include <boost/asio/ip/address.hpp>

#include <vector>

namespace kubelane::config {

/// The rules across keys, every broken one. Ranges of single values are `load`'s.
///
/// `written` gives problems their place; a problem with a key that the file leaves out stands at
/// the nearest section around it that the file has. `host_addresses` are this host's, for listeners
/// on all addresses. An upstream without a host and a listener with port 0 stand for values that
/// were wrong already, and are passed by.
problems validate(const config& of, const positions& written,
                  const std::vector<boost::asio::ip::address>& host_addresses);

/// Would a connection to `target` come back to one of `listeners`? `host_addresses` are this
/// host's; loopback is always taken to be.
bool is_own_listener(const net::endpoint& target, const std::vector<net::endpoint>& listeners,
                     const std::vector<boost::asio::ip::address>& host_addresses);

/// Everything kubelane listens on: `listen`, `admin.listen` and `metrics.listen`.
std::vector<net::endpoint> all_listeners(const config& of);

/// Leaves of several upstreams with one address the first, so that addresses are unique.
void merge_same_addresses(config& of);

}  // namespace kubelane::config
