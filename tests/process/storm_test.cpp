// Servers that are slow get little more work for being slow.

#include "serving.hpp"
#include "tests/support/peer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

constexpr int clients = 400;
constexpr std::size_t at_once = 50;
constexpr double most = 1.15;  // connections that servers see for each client's

/// Clients that say their ClientHello, wait for the first byte and leave, many at once.
class handshakes {
 public:
  explicit handshakes(int port)
      : where_(*net::parse_endpoint("127.0.0.1:" + std::to_string(port), 0)) {}

  /// How many of `clients` were answered.
  int run() {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (ended_ < clients && std::chrono::steady_clock::now() < end) {
      for (auto& each : places_) step(each);
      std::this_thread::sleep_for(2ms);
    }
    return answered_;
  }

 private:
  struct place {
    peer client;
    bool asked = false;
  };

  void step(place& at) {
    if (!at.client.is_open()) {
      if (begun_ == clients) return;
      ++begun_;
      at = {connect_to(where_)};
    }
    if (!at.asked) at.asked = at.client.push(hello_) > 0;
    at.client.pull();
    const bool answered = !at.client.received.empty();
    if (!answered && !at.client.saw_end && !at.client.saw_reset) return;
    answered_ += answered ? 1 : 0;
    ++ended_;
    at = {};
  }

  net::endpoint where_;
  std::string hello_ = client_hello();
  std::vector<place> places_ = std::vector<place>(at_once);
  int begun_ = 0;
  int ended_ = 0;
  int answered_ = 0;
};

/// Every server looks at a new connection's first bytes only after a second.
void slow_down(serving& all) {
  for (const auto& server : all.servers)
    server->change([](demo::apiserver_behaviour& how) { how.before_tls = 1s; });
}

std::uint64_t accepted(serving& by) {
  std::uint64_t sum = 0;
  for (const auto& server : by.servers) sum += server->counters().accepted;
  return sum;
}

TEST(Storm, ServersThatTakeASecondForTlsSeeHardlyMoreHandshakesThanThereAreClients) {
  serving it("", "mode: tcp, interval: 10m");  // so that all that comes is for clients
  ASSERT_TRUE(it.ready) << it.run.error();
  slow_down(it);
  const auto before = accepted(it);
  EXPECT_EQ(handshakes(it.port).run(), clients) << it.run.error();
  EXPECT_LE(static_cast<double>(accepted(it) - before), most * clients);
}

TEST(Storm, WithProbesThatSayThatAllAreSlowFewerStill) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  slow_down(it);
  EXPECT_EQ(handshakes(it.port).run(), clients) << it.run.error();
  double again = 0;
  for (const char* kind : {"dial", "first_flight"})
    again +=
        metric(it.admin, std::string("kubelane_hedges_total{kind=\"") + kind + "\"}").value_or(0);
  EXPECT_LE(again, (most - 1) * clients);
}

}  // namespace
}  // namespace kubelane::test
