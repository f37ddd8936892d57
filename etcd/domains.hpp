#pragma once

#include "etcd/view.hpp"
#include "health/quorum.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <vector>

namespace kubelane::etcd {

/// A failure domain, by the names of its members.
struct domain {
  std::string name;
  std::vector<std::string> members;
};

/// What is left when a whole domain is lost.
struct domain_loss {
  std::string name;
  std::vector<std::string> members;  ///< voters, by name
  health::quorum::standing now;      ///< after its loss now, with what is down already
  bool survives = false;             ///< after its loss while all others are up
};

/// A host of an inventory that has a failure domain.
struct placed_host {
  std::string name;
  std::string address;
  std::string zone;
};

/// Reads `NAME=MEMBER+MEMBER`. Fails with how it is written.
boost::system::result<domain, std::string> parse_domain(const std::string& text);

/// Finds the domains' members among an inventory's hosts: by name, else by address, for members
/// often bear other names than their hosts.
std::vector<domain> place(const cluster_view& members, const std::vector<placed_host>& hosts);

/// Each domain's loss, in the order given; adds a notice to `view` for each that stops writes, and
/// for members in no domain. Fails with the name that no member has, or that is in two domains.
boost::system::result<std::vector<domain_loss>, std::string> lose_domains(
    cluster_view& view, const std::vector<domain>& domains);

}  // namespace kubelane::etcd
