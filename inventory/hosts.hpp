#pragma once

#include "inventory/text.hpp"

#include <boost/system/result.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// The hosts that one pattern of an inventory stands for.
struct host_names {
  std::vector<std::string> names;
  std::optional<int> port;  ///< of `name:2222` or `[fd00::1]:2222`
  std::size_t work = 1;     ///< steps it took; more than names where ranges are empty
};

/// Most hosts that one pattern may stand for.
constexpr std::size_t most_hosts = 200'000;

/// Most steps that all patterns of one file may take: what keeps hostile text from hanging.
constexpr std::size_t most_hosts_of_a_file = 500'000;

/// Takes a host pattern apart: `cp[01:03]` (padding kept), `w[a:c]`, `x[1:9:2]`, several ranges, a
/// port at the end. What is no host name is taken as it is, as Ansible does.
/// Source: Ansible 2.14's inventory plugins.
boost::system::result<host_names, text_error> expand_hosts(std::string_view pattern);

}  // namespace kubelane::inventory
