#pragma once

#include "health/evidence.hpp"
#include "net/credentials.hpp"
#include "net/descriptor_reserve.hpp"
#include "net/endpoint.hpp"
#include "net/http.hpp"
#include "net/stream.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace kubelane::health {

namespace asio = boost::asio;

/// What is heard of an upstream beside the probes' results.
struct probe_events {
  /// Its host's kernel is silent; why, in words.
  std::function<void(const std::string& detail)> on_host_silent;
  /// Bytes of its process came after their probe had been given up.
  std::function<void()> on_heard;
  /// An answer other than a pass came after its probe had been given up: that probe's report, as
  /// it would have been. kube-apiserver takes two seconds to say that its etcd is lost.
  std::function<void(const probe_report&)> on_late_answer;
  /// What it answered; may be empty.
  std::function<void(const net::http_response&)> on_answer{};
  /// A handshake showed a certificate that ends then.
  std::function<void(std::chrono::system_clock::time_point expiry)> on_certificate;
};

/// One connection to an upstream for probes: connect, TLS, then requests one after the other.
///
/// Each step runs up to a deadline; after `timed_out` it can be repeated to go on waiting, so that
/// a connection whose probe was given up still serves as a witness. While a step waits, the
/// kernel's view is looked at every 100 ms: what was sent a second ago, was repeated at least twice
/// and never acknowledged means that the host is silent.
class probe_connection {
 public:
  /// `reserve` and `events` outlive this.
  probe_connection(asio::any_io_executor executor, net::endpoint address,
                   net::descriptor_reserve& reserve, const probe_events& events);
  /// Closes in order.
  ~probe_connection();
  probe_connection(const probe_connection&) = delete;
  probe_connection& operator=(const probe_connection&) = delete;

  asio::awaitable<net::error_code> connect(time_point deadline);
  asio::awaitable<net::error_code> secure(net::tls_context context, net::tls_session session,
                                          time_point deadline);
  /// Sends the request unless that is done, and reads the answer. `identity` must live meanwhile.
  asio::awaitable<net::error_code> ask(std::string path, const net::credentials& identity,
                                       time_point deadline);
  /// What `ask` read; once.
  net::http_response take_answer();

  /// Reports every byte from now on.
  void testify() { testifies_ = true; }

  bool secured() const noexcept { return secured_under_.has_value(); }
  bool secured_under(const net::tls_context& context) const { return secured_under_ == context; }
  int answers() const noexcept { return answers_; }  ///< taken so far
  std::uint64_t heard() const noexcept { return stream_.bytes_received(); }
  std::chrono::microseconds round_trip() const noexcept;
  net::stream& stream() noexcept { return stream_; }

 private:
  net::error_code open(asio::ip::tcp::socket& socket);
  template <class Step>
  asio::awaitable<net::error_code> repeat(Step step, time_point deadline);
  void begin_round();
  void note_heard();
  void look_for_silence();

  asio::any_io_executor executor_;
  net::endpoint address_;
  net::descriptor_reserve& reserve_;
  const probe_events& events_;
  net::stream stream_;
  std::optional<net::tls_context> secured_under_;
  net::http_response_reader reader_;
  std::optional<time_point> sent_;  // when the TLS hello or the request under way went out
  std::uint32_t repeated_then_ = 0;
  std::uint64_t heard_then_ = 0;
  bool silence_told_ = false;
  bool testifies_ = false;
  bool asked_ = false;  // a request is out
  int answers_ = 0;
};

}  // namespace kubelane::health
