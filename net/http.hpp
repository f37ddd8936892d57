#pragma once

#include "net/stream.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace kubelane::net {

using http_headers = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header of this name, whatever its case.
std::optional<std::string_view> find_header(const http_headers& headers, std::string_view name);

struct http_request {
  std::string method = "GET";
  std::string target = "/";
  http_headers headers;  ///< `Host` belongs here; `Content-Length` is added when there is a body
  std::string body;
  bool keep_alive = true;
};

struct http_response {
  unsigned status = 200;
  std::string reason;  ///< as received; when sent and empty, the usual words
  http_headers headers;
  std::string body;
  bool keep_alive = true;  ///< the connection can carry another exchange
};

/// Larger messages are errors.
struct http_limits {
  std::size_t header = 8 * 1024;
  std::size_t body = 64 * 1024;
};

/// HTTP/1.1 text of a message, its body included.
std::string to_text(const http_request& request);
std::string to_text(const http_response& response);

/// Reads one response: with a length, chunked, or up to the end of the connection. Interim (1xx)
/// responses are passed by.
///
/// `read` can be repeated after a time-out and goes on where it was. Errors: the stream's (`eof`
/// only before the first byte), `truncated`, or the parser's for what is no HTTP or too large.
class http_response_reader {
 public:
  explicit http_response_reader(http_limits limits = {});
  ~http_response_reader();
  http_response_reader(http_response_reader&&) noexcept;
  http_response_reader& operator=(http_response_reader&&) noexcept;

  asio::awaitable<stream::status> read(stream& from);
  /// What was read; once, after `read` succeeded.
  http_response take();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Reads requests from one connection, one after the other; pipelined ones are kept for later.
class http_request_reader {
 public:
  explicit http_request_reader(http_limits limits = {});
  ~http_request_reader();

  asio::awaitable<stream::status> read(stream& from);
  http_request take();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Sends a request and reads its response. No limit in time: give it one. The stream can be used
/// again if the response says `keep_alive`; closing it is the caller's.
asio::awaitable<std::tuple<error_code, http_response>> exchange(stream& over, http_request request,
                                                                http_limits limits = {});

}  // namespace kubelane::net
