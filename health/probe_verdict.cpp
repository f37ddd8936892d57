#include "health/probe_verdict.hpp"

#include "health/readyz.hpp"
#include "net/tls.hpp"

#include <boost/asio/error.hpp>

#include <algorithm>
#include <cerrno>
#include <optional>

namespace kubelane::health {
namespace {

namespace asio = boost::asio;
namespace errc = boost::system::errc;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr std::size_t longest_reason = 40;

// `503 Service Unavailable`; what does not belong into a log line is `?`.
std::string status_line(unsigned status, std::string_view reason) {
  std::string result = std::to_string(status);
  if (!reason.empty()) result += ' ';
  for (const char letter : reason.substr(0, longest_reason))
    result += letter >= ' ' && letter <= '~' ? letter : '?';
  return result;
}

std::string timed_out_in(phase reached) {
  switch (reached) {
    case phase::connect:
      return "connect timed out";
    case phase::tls:
      return "TLS handshake timed out";
    case phase::answer:
      return "no answer in time";
  }
  return {};
}

std::string lost_in(phase reached, error_code error) {
  const auto how = error == asio::error::connection_reset || error == asio::error::broken_pipe
                       ? "connection reset "
                       : "connection ended ";
  switch (reached) {
    case phase::connect:
      return how + std::string("at connect");
    case phase::tls:
      return how + std::string("in the TLS handshake");
    case phase::answer:
      return how + std::string("before the answer");
  }
  return {};
}

// This node's own trouble in words; nothing if the error is none.
std::optional<std::string> local_trouble(error_code error) {
  if (error.category() != boost::system::system_category()) return std::nullopt;
  if (error == errc::network_unreachable || error == errc::network_down)
    return "network unreachable";
  if (error == errc::permission_denied || error == errc::operation_not_permitted)
    return "permission denied (local policy)";
  if (error == errc::too_many_files_open || error == errc::too_many_files_open_in_system)
    return "out of file descriptors";
  if (error == errc::address_not_available) return "no local address or port to connect from";
  if (error == errc::address_family_not_supported) return "address family not supported here";
  if (error == errc::no_buffer_space || error == errc::not_enough_memory) return "out of memory";
  return std::nullopt;
}

verdict judge_stream(net::stream_error error, phase reached, const std::string& words) {
  switch (error) {
    case net::stream_error::truncated:
      return {outcome::lost, lost_in(reached, {})};
    case net::stream_error::peer_silent:
      return {outcome::host_silent, words};
    case net::stream_error::not_tls:
    case net::stream_error::tls_failed:
      return {outcome::not_tls, words};
    case net::stream_error::wrong_certificate:
      return {outcome::wrong_certificate, words};
    case net::stream_error::bad_validity:
      return {outcome::bad_validity, words};
    case net::stream_error::certificate_required:
      // Its own certificate verified; it is alive, and says no more than 401 does.
      return {outcome::unauthorized, "it wants a client certificate (" + words + ")"};
  }
  return {};
}

}  // namespace

verdict judge_answer(unsigned status, std::string_view reason, std::string_view body) {
  const auto line = status_line(status, reason);
  if (status == 200) return {};
  if (status == 401 || status == 403) return {outcome::unauthorized, line};
  const auto failed = parse_readyz(body);
  const auto result = failed.shutdown ? outcome::shutting_down : outcome::not_ready;
  const auto names = failed.in_words();
  return {result, names.empty() ? line : names, failed.etcd && !failed.shutdown};
}

verdict judge_failure(phase reached, error_code error, const std::string& words) {
  if (error.category() == make_error_code(net::stream_error::truncated).category())
    return judge_stream(static_cast<net::stream_error>(error.value()), reached, words);
  if (error == asio::error::timed_out) return {outcome::timed_out, timed_out_in(reached)};
  if (error == asio::error::connection_refused) return {outcome::refused, "connection refused"};
  if (error == errc::host_unreachable ||
      error == error_code(EHOSTDOWN, boost::system::system_category()))
    return {outcome::host_silent, "no route to host"};
  if (auto trouble = local_trouble(error)) return {outcome::local_trouble, *trouble};
  const bool ended =
      error == asio::error::eof || error.category() == boost::system::system_category();
  if (ended) return {outcome::lost, lost_in(reached, error)};
  return {outcome::not_ready, "the answer is not HTTP (" + error.message() + ")"};
}

milliseconds phase_limit(milliseconds timeout, std::chrono::microseconds round_trip) {
  const auto raised = std::chrono::duration_cast<milliseconds>(8 * round_trip);
  return std::max<milliseconds>(timeout, std::min<milliseconds>(raised, 2s));
}

}  // namespace kubelane::health
