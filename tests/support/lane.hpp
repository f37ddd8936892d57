#pragma once

#include "net/reactor.hpp"
#include "net/socket.hpp"
#include "proxy/data_path.hpp"
#include "proxy/upstream_pool.hpp"
#include "tests/support/peer.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace kubelane::test {

using namespace std::chrono_literals;

/// The data path with a real pool and no probes, turned by the test itself: nothing happens between
/// two steps, so a test can look at everything.
class lane {
 public:
  explicit lane(config::config settings = {});
  ~lane();

  /// The upstreams, named cp1, cp2, ... The first is the one in this node's zone, so it is dialled
  /// first.
  void use(const std::vector<net::endpoint>& upstreams);
  /// Opens a listener; port 0.
  net::endpoint listen(const char* address = "127.0.0.1");

  /// Turns the loop until `claim()`, which may move the test's own sockets; false if that takes
  /// longer than `limit`.
  template <typename Claim>
  bool until(const Claim& claim, std::chrono::milliseconds limit = 5s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!claim()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop.turn(1ms);
    }
    return true;
  }
  void run_for(std::chrono::milliseconds time);
  /// A client that is connected to `first_listener`.
  peer client(int receive_buffer = 0) { return connect_to(first_listener, receive_buffer); }
  /// Waits for `from`'s next connection.
  peer accept(test_listener& from);
  /// Sends all of `bytes` from one end and waits until the other has it.
  bool carry(peer& from, peer& to, const std::string& bytes);
  /// A client and the server's end of it, relayed: a byte went each way.
  std::pair<peer, peer> pair(test_listener& server, int receive_buffer = 0);
  proxy::upstream_id id(std::size_t upstream);

  boost::asio::io_context io{1};
  net::reactor loop{io};
  config::config settings;
  std::mt19937_64 random{1};
  proxy::upstream_pool pool;
  net::endpoint first_listener;

  // What the observer heard.
  std::vector<proxy::end_reason> ends;
  std::vector<std::string> dials;  ///< "cp1 connected"
  std::vector<std::string> hedges;
  std::vector<std::string> rejections;
  std::vector<std::string> resets;
  std::vector<std::string> problems;

  proxy::data_path path;

 private:
  proxy::data_path_observer observer();
  std::string name_of(proxy::upstream_id id);
};

}  // namespace kubelane::test
