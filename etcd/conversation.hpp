#pragma once

#include "etcd/ask.hpp"
#include "etcd/url.hpp"
#include "health/evidence.hpp"
#include "net/http.hpp"
#include "net/stream.hpp"
#include "net/tls.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kubelane::etcd {

namespace asio = boost::asio;
using time_point = std::chrono::steady_clock::time_point;

/// One connection to a member, over which it is asked one thing after the other. Every wait ends at
/// the deadline.
class conversation {
 public:
  conversation(asio::any_io_executor executor, url with, const credentials& show,
               time_point deadline);

  /// Connects to the first of `addresses` that takes it; the trouble in words, empty if none.
  asio::awaitable<std::string> open(std::vector<asio::ip::address> addresses);

  struct reply {
    std::string trouble;  ///< empty: `body` is that of a 200
    std::string body;
    unsigned status = 0;  ///< 0: no answer
    std::optional<clock_offset> clock;
  };
  asio::awaitable<reply> post(std::string path, std::string body);

 private:
  std::string in_words(net::error_code error) const;
  std::string hint(net::error_code error) const;

  asio::any_io_executor executor_;
  const url with_;
  const credentials& show_;
  const time_point deadline_;
  net::stream stream_;
  health::phase reached_ = health::phase::connect;
};

}  // namespace kubelane::etcd
