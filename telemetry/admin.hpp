#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace kubelane::telemetry {

struct admin_response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string policy;  ///< Content-Security-Policy; empty: nothing may be loaded or run
};

/// Answers a path (without its query) on the admin port.
using admin_handler = std::function<admin_response(std::string_view path)>;

enum class admin_scope {
  everything,
  metrics_only,  ///< every other path than /metrics is 404
};

/// A small HTTP/1.1 server for people and probes: GET and HEAD, requests of at most 8 KiB.
///
/// At most 16 connections at once; one more closes the oldest, so that nobody can lock the
/// kubelet's probe out by holding connections. A connection idle for five seconds is closed.
class admin {
 public:
  /// `on_bug` gets what no connection should ever throw.
  admin(boost::asio::io_context& io, admin_handler handler,
        std::function<void(std::exception_ptr)> on_bug);
  ~admin();
  admin(const admin&) = delete;
  admin& operator=(const admin&) = delete;

  /// Asked for each client of a `metrics_only` listener; one that may not is closed at once, and so
  /// takes nobody's place.
  void restrict_metrics(std::function<bool(const boost::asio::ip::address&)> may_ask);
  /// Serves a listening TCP socket; takes ownership of the descriptor.
  void listen(int descriptor, admin_scope scope);
  /// Closes listeners and connections; the loop has to turn once more before this is destroyed.
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::telemetry
