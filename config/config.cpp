#include "config/config.hpp"

#include <algorithm>

namespace kubelane::config {

using namespace std::chrono_literals;

std::string describe(std::string_view file, const problem& what, severity how) {
  const auto line = std::to_string(std::max(what.at.line, 1));
  const auto column = std::to_string(std::max(what.at.column, 1));
  return std::string(file) + ":" + line + ":" + column + ": " + what.path + ": " +
         (how == severity::warning ? "warning: " : "") + what.message;
}

std::string_view to_string(balance_policy value) {
  switch (value) {
    case balance_policy::round_robin:
      return "round_robin";
    case balance_policy::random:
      return "random";
    case balance_policy::least_connections:
      return "least_connections";
  }
  return {};
}

std::string_view to_string(probe_mode value) {
  switch (value) {
    case probe_mode::readyz:
      return "readyz";
    case probe_mode::tcp:
      return "tcp";
  }
  return {};
}

std::string_view to_string(verify_mode value) {
  switch (value) {
    case verify_mode::full:
      return "full";
    case verify_mode::ca:
      return "ca";
    case verify_mode::none:
      return "none";
  }
  return {};
}

std::string_view to_string(failover_mode value) {
  switch (value) {
    case failover_mode::act:
      return "act";
    case failover_mode::observe:
      return "observe";
  }
  return {};
}

std::string_view to_string(etcd_topology value) {
  switch (value) {
    case etcd_topology::stacked:
      return "stacked";
    case etcd_topology::external:
      return "external";
  }
  return {};
}

std::string_view to_string(log_level value) {
  switch (value) {
    case log_level::trace:
      return "trace";
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warn:
      return "warn";
    case log_level::error:
      return "error";
  }
  return {};
}

std::string_view to_string(log_format value) {
  switch (value) {
    case log_format::text:
      return "text";
    case log_format::json:
      return "json";
  }
  return {};
}

std::string to_string(milliseconds value) {
  const auto count = value.count();
  if (count == 0) return "0s";
  if (count % 3'600'000 == 0) return std::to_string(count / 3'600'000) + "h";
  if (count % 60'000 == 0) return std::to_string(count / 60'000) + "m";
  if (count % 1'000 == 0) return std::to_string(count / 1'000) + "s";
  return std::to_string(count) + "ms";
}

std::string quote(std::string_view text) {
  constexpr std::size_t limit = 80;
  constexpr char digits[] = "0123456789abcdef";
  auto shown = text.substr(0, limit);
  // Not between the bytes of one character: those after the first are 10xxxxxx.
  while (shown.size() < text.size() && (text[shown.size()] & 0xc0) == 0x80) shown.remove_suffix(1);
  std::string result = "\"";
  for (const unsigned char byte : shown) {
    if (byte == '"' || byte == '\\') {
      result += {'\\', static_cast<char>(byte)};
    } else if (byte < 0x20 || byte == 0x7f) {
      result += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      result += static_cast<char>(byte);
    }
  }
  return result + (shown.size() < text.size() ? "...\"" : "\"");
}

milliseconds probe_interval(const config& from) {
  if (from.health.interval) return *from.health.interval;
  return std::clamp<milliseconds>(milliseconds(from.cluster.nodes * 1000LL / 300), 1s, 15s);
}

milliseconds hung_reset_after(const config& from) {
  if (from.cluster.nodes <= 450) return from.failover.reset_after;
  const auto fleet = std::min<milliseconds>(milliseconds(from.cluster.nodes * 1000LL / 150), 10s);
  return std::max(from.failover.reset_after, fleet);
}

milliseconds hung_reset_spread(const config& from) {
  return milliseconds(from.cluster.nodes);
}

}  // namespace kubelane::config
