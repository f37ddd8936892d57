#pragma once

#include "net/endpoint.hpp"

#include <boost/system/result.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace kubelane::commands {

struct admin_answer {
  unsigned status = 0;
  std::string body;
};

/// The address after --admin. Nothing if it is none, which was said.
std::optional<net::endpoint> parse_admin(const std::string& text);

/// Asks a running kubelane for `path` and waits for at most `limit`; the error is in words.
boost::system::result<admin_answer, std::string> ask_admin(const net::endpoint& admin,
                                                           const std::string& path,
                                                           std::chrono::milliseconds limit);

}  // namespace kubelane::commands
