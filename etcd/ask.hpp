#pragma once

#include "etcd/survey.hpp"
#include "etcd/url.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <vector>

namespace kubelane::etcd {

/// How to be known to the members and to know them: PEM text.
struct credentials {
  std::string ca;
  std::string certificate;  ///< empty: none is shown
  std::string key;
};

/// Reads the files; one that is not named is not read. Fails with the option, the file and why.
boost::system::result<credentials, std::string> read_credentials(
    const std::string& ca_file, const std::string& certificate_file, const std::string& key_file);

/// Asks all endpoints at once, and those that they list, for their status and members; looks again
/// while an election is under way; then asks one of them to reach an agreement. Ends within 2.8 s,
/// whatever hangs. Nothing that is asked changes anything: member/list, maintenance/status,
/// maintenance/alarm with the action GET. `show` comes from `read_credentials`.
survey ask_cluster(const std::vector<url>& endpoints, const credentials& show);

}  // namespace kubelane::etcd
