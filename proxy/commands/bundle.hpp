#pragma once

#include "net/endpoint.hpp"

#include <string>

namespace kubelane::commands {

/// Writes a .tar.gz for a support engineer: status, events, metrics, configuration, sockets, unit,
/// log, limits, kernel; everything through `redact`. What cannot be had is named in its NOTES.txt.
/// 0 if it was written, else 1, and the reason was said.
int write_bundle(const std::string& path, const net::endpoint& admin);

}  // namespace kubelane::commands
