#pragma once

#include "net/endpoint.hpp"
#include "net/tls.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace kubelane::demo {

using std::chrono::milliseconds;

/// How one path is answered.
struct path_answer {
  unsigned status = 200;
  std::string body = "ok";
  milliseconds delay{0};
};

enum class first_act {
  serve,
  close,  ///< each new connection is closed as soon as bytes came
  reset,  ///< the same, with RST
};

/// How the server behaves. May change at any time; what is running goes by it too.
struct apiserver_behaviour {
  std::map<std::string, path_answer, std::less<>> answers;  ///< by path, without the query
  bool plain_http = false;  ///< does not speak TLS; answers a TLS hello with 400
  first_act act = first_act::serve;
  milliseconds before_tls{0};     ///< a new connection's bytes wait this long before the first look
  milliseconds before_answer{0};  ///< each answer waits, plain text ones too
  milliseconds watch_period{1'000};  ///< between two lines of a watch
  bool close_after_answer = false;   ///< `Connection: close` on every answer
  std::string date;                  ///< the header of each answer; empty: none
  std::string greeting;              ///< sent as soon as a connection is accepted
};

/// What the server saw since it was made.
struct apiserver_counters {
  std::uint64_t accepted = 0;
  std::uint64_t open = 0;        ///< connections now
  std::uint64_t handshakes = 0;  ///< full ones
  std::uint64_t resumptions = 0;
  std::uint64_t failed_handshakes = 0;  ///< what an API server logs as `TLS handshake error`
  std::uint64_t cut = 0;                ///< TLS connections that ended without close_notify
  std::uint64_t requests = 0;
  std::uint64_t probes = 0;    ///< requests whose User-Agent begins with `kubelane/`
  std::uint64_t received = 0;  ///< bytes taken by the last plain `count` or `shut`
  std::string last_failure;    ///< of a handshake, in words
  std::string last_user_agent;
  std::string last_host;
  std::string last_authorization;
  std::string last_client;  ///< common name of the last client certificate
};

struct apiserver_options {
  std::string name = "cp1";
  net::endpoint listen = *net::parse_endpoint("127.0.0.1", 0);  ///< port 0: any
  net::server_tls tls;
  int backlog = 512;
};

/// A small stand-in for kube-apiserver that fails on request.
///
/// With TLS: HTTP/1.1. `/readyz`, `/livez`, `/healthz` answer `ok`, `/version` its version,
/// `/bytes?n=N` N bytes of `pattern`, anything with `watch=1` a line each `watch_period` without
/// end; any other path 200 with the server's name in `Served-By` and the body.
///
/// Without, a text protocol, one command a line, many on one connection; after each the connection
/// stays, silent, so that it serves as a watch:
///   name       answers the server's name
///   bytes N    N bytes of `pattern`
///   count MS   reads to EOF, waits MS, sends the count as a line and 200,000 bytes, closes
///   shut       sends FIN, then reads to EOF
///   echo       sends back what comes until EOF, then closes
///   deaf       never reads again
///   close, reset
///
/// Not thread-safe: to be used on the thread of its `io_context`.
class apiserver {
 public:
  /// Listens at once. Throws `std::system_error` if it cannot, `std::runtime_error` for bad TLS.
  apiserver(boost::asio::io_context& io, apiserver_options options);
  /// `stop`, and everything has ended, before this.
  ~apiserver();
  apiserver(const apiserver&) = delete;
  apiserver& operator=(const apiserver&) = delete;

  net::endpoint address() const noexcept;
  apiserver_behaviour& behaviour() noexcept;
  /// As a stopped process: its kernel accepts and acknowledges, nothing is answered.
  void freeze();
  void thaw();
  /// For handshakes from now on. Throws `std::runtime_error`.
  void use(const net::server_tls& tls);
  /// Sends bytes on every open plain connection.
  void push(std::string bytes);

  /// The port is refused from now on; connections live.
  void stop_listening();
  /// Takes the port again.
  void listen();
  /// Ends every connection: FIN as a dying process does, or RST.
  void drop_connections(first_act how);
  /// A crash: both of these.
  void kill();
  /// Ends everything for good; tasks end as the loop runs on.
  void stop();
  bool stopped() const noexcept;

  const apiserver_counters& counters() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Byte `offset + i` of an endless text that repeats nowhere near: for checking long answers.
std::string pattern(std::uint64_t offset, std::size_t size);

}  // namespace kubelane::demo
