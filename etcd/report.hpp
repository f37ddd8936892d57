#pragma once

#include "etcd/decide.hpp"
#include "etcd/domains.hpp"
#include "etcd/view.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::etcd {

/// What is printed.
struct report {
  cluster_view view;
  std::vector<domain_loss> domains;
  std::optional<decision> asked;  ///< for --remove or --without
  int exit_status = 0;
};

/// 0 healthy, 1 degraded, 2 no quorum, 3 no answer; with a decision 0 is safe and 1 is not now.
int exit_status_of(const cluster_view& view, const std::optional<decision>& asked);

/// For people: the answer first, then a table of members, then what is wrong.
std::string report_text(const report& of);

/// For programs; the README documents its shape.
std::string report_json(const report& of);

}  // namespace kubelane::etcd
