#pragma once

#include "net/endpoint.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace kubelane::etcd {

/// Where a member serves clients.
struct url {
  bool tls = true;  ///< https://, else http://
  net::host_port at;

  friend bool operator==(const url&, const url&) = default;
};

/// Reads `https://HOST:PORT` or `http://HOST:PORT`; 2379 if the port is left out. Fails with what
/// is wrong and how it is written.
boost::system::result<url, std::string> parse_url(std::string_view text);

/// In one form, so that equal ones are equal text: no slash at the end, the port always there.
std::string to_string(const url& of);

}  // namespace kubelane::etcd
