#pragma once

#include "proxy/commands/text_table.hpp"

#include <string>
#include <string_view>

namespace kubelane::commands {

/// The JSON of /status as a table for people: API servers, quorum, what is wrong, the last hour,
/// the last state changes. Throws boost::system::system_error if it is not that JSON.
std::string status_table(std::string_view json, colour with);

}  // namespace kubelane::commands
