#pragma once

#include "inventory/cluster.hpp"
#include "inventory/model.hpp"
#include "inventory/settings.hpp"

#include <boost/system/result.hpp>

#include <optional>
#include <string>
#include <vector>

namespace kubelane::inventory {

/// Why no configuration can be written: one line for each reason.
struct emit_error {
  std::vector<std::string> reasons;
};

/// kubelane's configuration for one host, or (empty name) for all workers. Each value has a comment
/// that says where it comes from; upstreams are in the order of their names, so that a reordered
/// inventory gives the same text. Nothing is guessed: an address that only facts or templates tell
/// is a reason to refuse. So is a control plane on whose port its own API server listens, unless
/// `own_port` puts kubelane on another. `sources` are named in the first comment.
boost::system::result<std::string, emit_error> emit_config(const model& of, const cluster& seen,
                                                           const settings& from,
                                                           const std::string& node,
                                                           std::optional<int> own_port,
                                                           const std::vector<std::string>& sources);

/// `cp2` before `cp10`: digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace kubelane::inventory
