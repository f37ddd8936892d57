#pragma once

#include "proxy/event.hpp"

#include <boost/json.hpp>

namespace kubelane::proxy {

/// The last `count` of `events`, oldest first.
boost::json::array events_json(const std::deque<state_change>& events, std::size_t count);

}  // namespace kubelane::proxy
