#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kubelane::health {

/// What a readiness body that came with another status than 200 says.
struct failed_checks {
  /// The failed checks in the order of the body, each once, at most eight of at most 64 characters;
  /// `etcd-readiness` is given as `etcd`. Characters that do not belong into a log line are `?`.
  std::vector<std::string> names;
  bool shutdown = false;  ///< `shutdown` is among them, also beyond the eighth
  bool etcd = false;      ///< `etcd` or `etcd-readiness` is

  /// `etcd, poststarthook/x`; `and more` stands for what was left out. Empty without names.
  std::string in_words() const;
  bool more = false;  ///< there were more than `names` holds
};

/// Reads a body as kube-apiserver writes it: a line `[-]NAME failed: reason withheld` for each
/// failed check. Anything else, cut-off lines and hostile text included, is passed over.
failed_checks parse_readyz(std::string_view body);

}  // namespace kubelane::health
