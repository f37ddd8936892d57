#include "proxy/end_reason.hpp"

namespace kubelane::proxy {

const char* to_string(end_reason value) noexcept {
  switch (value) {
    case end_reason::client_closed:
      return "client_closed";
    case end_reason::server_closed:
      return "server_closed";
    case end_reason::client_reset:
      return "client_reset";
    case end_reason::server_reset:
      return "server_reset";
    case end_reason::no_upstream:
      return "no_upstream";
    case end_reason::drained:
      return "drained";
    case end_reason::reset_hung:
      return "reset_hung";
    case end_reason::reset_dead:
      return "reset_dead";
    case end_reason::unacknowledged:
      return "unacknowledged";
    case end_reason::half_closed_timeout:
      return "half_closed_timeout";
    case end_reason::shutdown:
      return "shutdown";
    case end_reason::error:
      return "error";
  }
  return "";
}

}  // namespace kubelane::proxy
