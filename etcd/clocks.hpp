#pragma once

#include "etcd/view.hpp"

namespace kubelane::etcd {

/// What an answer's Date says of its sender's clock: `sent` and `received` are ours, in Unix time.
/// Nothing if it is no date as HTTP writes it: `Mon, 30 Nov 2026 16:18:24 GMT`.
std::optional<clock_offset> read_clock(std::string_view date, milliseconds sent,
                                       milliseconds received);

/// Sets each member's `clock_apart`, beside the member in the middle: most clocks are right.
void compare_clocks(cluster_view& view, const survey& of);

}  // namespace kubelane::etcd
