#include "health/evidence.hpp"

namespace kubelane::health {

const char* to_string(state value) noexcept {
  switch (value) {
    case state::unknown:
      return "unknown";
    case state::ready:
      return "ready";
    case state::slow:
      return "slow";
    case state::shutting_down:
      return "shutting_down";
    case state::not_ready:
      return "not_ready";
    case state::refused:
      return "refused";
    case state::hung:
      return "hung";
    case state::dead:
      return "dead";
    case state::impostor:
      return "impostor";
    case state::unresolved:
      return "unresolved";
  }
  return "?";
}

std::optional<state> state_from(std::string_view word) noexcept {
  for (int i = 0; i <= static_cast<int>(state::unresolved); ++i)
    if (word == to_string(static_cast<state>(i))) return static_cast<state>(i);
  return std::nullopt;
}

const char* to_string(membership value) noexcept {
  switch (value) {
    case membership::configured:
      return "configured";
    case membership::discovered:
      return "discovered";
    case membership::leaving:
      return "leaving";
  }
  return "?";
}

const char* to_string(outcome value) noexcept {
  switch (value) {
    case outcome::passed:
      return "passed";
    case outcome::unauthorized:
      return "unauthorized";
    case outcome::shutting_down:
      return "shutting_down";
    case outcome::not_ready:
      return "not_ready";
    case outcome::timed_out:
      return "timed_out";
    case outcome::lost:
      return "lost";
    case outcome::refused:
      return "refused";
    case outcome::host_silent:
      return "host_silent";
    case outcome::local_trouble:
      return "local_trouble";
    case outcome::wrong_certificate:
      return "wrong_certificate";
    case outcome::bad_validity:
      return "bad_validity";
    case outcome::not_tls:
      return "not_tls";
  }
  return "?";
}

const char* to_string(dial_result value) noexcept {
  switch (value) {
    case dial_result::connected:
      return "connected";
    case dial_result::refused:
      return "refused";
    case dial_result::timed_out:
      return "timed_out";
    case dial_result::lost:
      return "lost";
    case dial_result::host_silent:
      return "host_silent";
    case dial_result::local_trouble:
      return "local_trouble";
    case dial_result::abandoned:
      return "abandoned";
  }
  return "?";
}

}  // namespace kubelane::health
