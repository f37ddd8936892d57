#pragma once

#include "config/config.hpp"

#include <boost/asio/ip/address.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubelane::config {

/// A configuration that may be used, and what deserves a look about it.
struct loaded {
  config settings;
  std::vector<problem> warnings;
  std::string text;  ///< what was read, if it was a file
};

/// The value, or every problem of the document, in the order of the document.
using load_result = boost::system::result<loaded, problems>;

/// Reads, completes with defaults and validates. `host_addresses` are this host's, for the rule
/// that no upstream is kubelane's own listener; without them only literal and loopback addresses
/// are told. Safe on hostile text; never throws on what it is given.
load_result load(std::string_view yaml,
                 const std::vector<boost::asio::ip::address>& host_addresses = {});

/// The same for a file of at most 1 MiB. That it is missing, unreadable or no file is a problem
/// too.
load_result load_file(const std::string& path,
                      const std::vector<boost::asio::ip::address>& host_addresses = {});

}  // namespace kubelane::config
