#pragma once

#include <string>
#include <string_view>

namespace kubelane::config {

/// Where a copy of the last usable configuration is in the state folder. With a broken file at
/// start, after a boot or a roll-back, a worker is better off with this one than with none.
std::string last_good_path(const std::string& state_folder);

/// Writes that copy, whole or not at all, unless it says the same already. False, with errno, if
/// that failed. Not forced to the disk, so that it never waits for one: after a power cut it may be
/// the one before, or missing.
bool save_last_good(const std::string& state_folder, std::string_view text);

}  // namespace kubelane::config
