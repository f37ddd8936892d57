#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/system/result.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::net {

/// The addresses of a name, each once, in the system's order; or why there are none, in words.
using lookup_result = boost::system::result<std::vector<boost::asio::ip::address>, std::string>;

/// Looks names up on helper threads, since `getaddrinfo` blocks for as long as a name server is
/// silent. At most four threads; a name that was slow the last time shares two of them, so that
/// names without an answer never keep the others waiting. Threads are never waited for: what is
/// still asked when the process exits is forgotten.
class resolver {
 public:
  using callback = std::function<void(lookup_result)>;
  /// What a helper thread calls; a seam for tests.
  using question = std::function<lookup_result(const std::string& name)>;

  /// Callbacks come on `io`'s loop, until this is destroyed.
  explicit resolver(boost::asio::io_context& io);
  resolver(boost::asio::io_context& io, question ask);
  ~resolver();
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;

  /// Asks for a name; if that is being asked already, `done` gets the same answer.
  void lookup(const std::string& name, callback done);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// Asks the system (`getaddrinfo`); blocks.
lookup_result ask_system(const std::string& name);

}  // namespace kubelane::net
