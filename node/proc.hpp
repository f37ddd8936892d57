#pragma once

#include "net/endpoint.hpp"
#include "node/facts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::node {

// What files of a node say. Pure; text that is not as expected is passed over.

struct listening {
  net::endpoint address;
  std::uint64_t inode = 0;
};

/// The listeners of /proc/net/tcp or tcp6. Source: proc(5), proc_net_tcp.rst.
std::vector<listening> parse_listeners(std::string_view proc_net_tcp);

/// The inode of a socket, from a link in /proc/PID/fd.
std::optional<std::uint64_t> socket_inode(std::string_view link);

/// The value of `--NAME=VALUE` or `--NAME VALUE` among words that `separator` ends.
std::string option_value(std::string_view text, std::string_view name, char separator);

/// The addresses of `localhost` in an /etc/hosts, in its order.
std::vector<boost::asio::ip::address> parse_hosts(std::string_view text);

/// The lines of semanage's ports.local that label TCP ports.
std::vector<selinux::label> parse_port_labels(std::string_view text, const std::string& place);

/// The type of a context, as `user:role:TYPE:level`.
std::string selinux_type(std::string_view context);

/// A `Date` header. Source: RFC 9110, 5.6.7, the preferred form.
std::optional<moment> parse_date(const std::string& text);

}  // namespace kubelane::node
