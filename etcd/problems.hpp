#pragma once

#include "etcd/view.hpp"

namespace kubelane::etcd {

/// Adds what is wrong to `view`, whose members are judged already. `list` is the one that counts.
void add_problems(cluster_view& view, const survey& of, const std::vector<listed_member>& list);

/// Adds what is wrong with the endpoints alone: all there is when none of them knows the members.
void add_endpoint_problems(cluster_view& view, const survey& of);

}  // namespace kubelane::etcd
