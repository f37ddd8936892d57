#pragma once

#include "node/facts.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace kubelane::node {

enum class severity { error, warning, notice };

std::string_view to_string(severity how);

/// One thing that keeps a node from reaching the API through kubelane, or will.
struct finding {
  std::string rule;  ///< as `proxy-manifest`
  severity how = severity::error;
  std::string at;       ///< a file, an address, an API server
  std::string message;  ///< what is wrong, and what would be right
};

/// Every finding, by rule in this order: configuration, proxy-manifest, proxy-process, port-held,
/// not-serving, kubeconfig-unreadable, kubeconfig-elsewhere, ports-differ, localhost-family,
/// selinux-port, clock-off, certificate-expiry.
///
/// Pure. What the facts do not know is no finding.
std::vector<finding> examine(const facts& of);

}  // namespace kubelane::node
