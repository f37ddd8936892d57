#pragma once

#include "net/endpoint.hpp"

#include <cstdint>
#include <optional>

namespace kubelane::net {

/// The user who owns a TCP socket of this host, by its two addresses (`local` as that socket sees
/// it). Asks the kernel (NETLINK_SOCK_DIAG), which answers at once. Nothing if there is no such
/// socket, or it cannot be asked.
std::optional<std::uint32_t> owner_of(const endpoint& local, const endpoint& remote);

}  // namespace kubelane::net
