#include "etcd/conversation.hpp"

#include "etcd/answers.hpp"
#include "etcd/clocks.hpp"
#include "health/probe_verdict.hpp"
#include "net/timeout.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <algorithm>

namespace kubelane::etcd {
namespace {

using asio::ip::tcp;
using net::error_code;
using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t largest_answer = 1024 * 1024;

clock::duration until(time_point deadline) {
  return std::max<clock::duration>(deadline - clock::now(), 0ms);
}

milliseconds unix_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now);
}

net::http_request request_for(const url& to, std::string path, std::string body) {
  net::http_request request;
  request.method = "POST";
  request.target = std::move(path);
  request.headers.emplace_back("Host", net::to_string(to.at));
  request.headers.emplace_back("User-Agent", "kubelane/" KUBELANE_VERSION);
  request.headers.emplace_back("Content-Type", "application/json");
  request.body = std::move(body);
  return request;
}

}  // namespace

conversation::conversation(asio::any_io_executor executor, url with, const credentials& show,
                           time_point deadline)
    : executor_(executor),
      with_(std::move(with)),
      show_(show),
      deadline_(deadline),
      stream_(tcp::socket(executor)) {}

asio::awaitable<std::string> conversation::open(std::vector<asio::ip::address> addresses) {
  error_code error = boost::system::errc::make_error_code(boost::system::errc::host_unreachable);
  auto left = static_cast<int>(addresses.size());
  for (const auto& address : addresses) {
    const tcp::endpoint target(address, with_.at.port);
    tcp::socket socket(executor_);
    auto attempt = socket.async_connect(target, net::nothrow);
    auto [failure] = co_await net::with_timeout(until(deadline_) / left--, std::move(attempt));
    error = failure;
    if (error) continue;
    stream_ = net::stream(std::move(socket));
    break;
  }
  if (error) co_return in_words(error);
  reached_ = health::phase::answer;
  if (!with_.tls) co_return std::string();
  reached_ = health::phase::tls;
  net::client_tls settings;
  settings.ca_pem = show_.ca;
  settings.certificate_pem = show_.certificate;
  settings.key_pem = show_.key;
  settings.server_name = with_.at.host;
  const auto context = net::tls_context::client(settings);
  if (!context) co_return context.error();
  auto handshake = stream_.client_handshake(*context, net::tls_session());
  auto [unsecured] = co_await net::with_timeout(until(deadline_), std::move(handshake));
  if (unsecured) co_return in_words(unsecured);
  reached_ = health::phase::answer;
  co_return std::string();
}

asio::awaitable<conversation::reply> conversation::post(std::string path, std::string body) {
  auto request = request_for(with_, std::move(path), std::move(body));
  net::http_limits limits;
  limits.body = largest_answer;
  const auto sent = unix_now();
  auto asking = net::exchange(stream_, std::move(request), limits);
  auto [error, response] = co_await net::with_timeout(until(deadline_), std::move(asking));
  reply result;
  if (error) {
    result.trouble = in_words(error);
    co_return result;
  }
  result.status = response.status;
  if (const auto date = net::find_header(response.headers, "Date"))
    result.clock = read_clock(*date, sent, unix_now());
  if (response.status == 200)
    result.body = std::move(response.body);
  else
    result.trouble = explain_refusal(response.status, response.reason, response.body);
  co_return result;
}

std::string conversation::in_words(error_code error) const {
  return health::judge_failure(reached_, error, stream_.failure()).detail + hint(error);
}

// What would be right, where the error tells.
std::string conversation::hint(error_code error) const {
  using net::stream_error;
  if (error == stream_error::not_tls)
    return "; if it serves without TLS, write http://" + net::to_string(with_.at);
  if (error == stream_error::wrong_certificate)
    return stream_.failure().find("not for") != std::string::npos
               ? "; ask it by a name or address that is in its certificate"
               : "; --cacert is to be the CA of etcd, as /etc/ssl/etcd/ssl/ca.pem or "
                 "/etc/kubernetes/pki/etcd/ca.crt";
  if (error == stream_error::certificate_required)
    return show_.certificate.empty() ? "; give --cert and --key"
                                     : "; --cert is not of a CA that it trusts, or is not for "
                                       "clients, or has expired";
  const bool ended = error == asio::error::eof || error == asio::error::connection_reset ||
                     error == stream_error::truncated;
  if (reached_ == health::phase::tls && ended)
    return "; if it serves without TLS, write http://" + net::to_string(with_.at);
  if (!with_.tls && reached_ == health::phase::answer && ended)
    return "; if it serves TLS, write https://" + net::to_string(with_.at);
  return {};
}

}  // namespace kubelane::etcd
