#pragma once

#include "inventory/cluster.hpp"
#include "inventory/finding.hpp"
#include "inventory/sources.hpp"

#include <string>
#include <vector>

namespace kubelane::inventory {

/// A failure domain and the etcd members in it.
struct failure_domain {
  std::string name;
  std::vector<std::string> members;
  bool survives = false;  ///< whether the other members are still a majority without it
};

/// What etcd's membership tolerates.
struct etcd_verdict {
  int majority = 0;
  int tolerated = 0;
  std::vector<failure_domain> domains;  ///< in the order of their first member
  std::vector<std::string> failed;      ///< members that were said to be lost
  bool held = true;                     ///< whether the others are a majority
  int spare = 0;                        ///< how many of them may still be lost; negative: missing
};

struct check_options {
  std::vector<std::string> failed;  ///< hosts to count as lost
  std::string node;                 ///< host on which kubelane would run besides the workers
};

struct verdict {
  cluster seen;
  etcd_verdict etcd;
  bool has_failed = false;        ///< hosts were said to be lost
  std::string proxy_type_note;    ///< what kubespray installs when nobody chose; may be empty
  std::vector<finding> findings;  ///< those of reading first, then by rule
};

/// Names of all rules, as findings and `--accept` have them.
const std::vector<std::string>& rule_names();

/// Checks an inventory against what kubespray refuses, what Kubernetes and etcd do not survive, and
/// what undoes kubelane. The reading's model gets kubespray's dynamic groups.
verdict check(reading& from, const check_options& how);

// The parts of check(), in its order; each adds its findings.
void check_groups(const model& in, const cluster& seen, const settings& from,
                  std::vector<finding>& findings);
etcd_verdict check_etcd(const model& in, const cluster& seen, const check_options& how,
                        std::vector<finding>& findings);
void check_addresses(const model& in, const cluster& seen, const settings& from,
                     std::vector<finding>& findings);
void check_access(const model& in, const cluster& seen, const settings& from,
                  const check_options& how, std::vector<finding>& findings);

/// `a`, `a and b`, `a, b and c`.
std::string join(const std::vector<std::string>& names);

}  // namespace kubelane::inventory
