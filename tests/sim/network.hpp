#pragma once

#include "health/evidence.hpp"

#include <functional>
#include <optional>
#include <random>
#include <vector>

/// A model of API servers, their hosts and the network, in virtual time.
namespace kubelane::sim {

using health::milliseconds;
using health::time_point;

enum class process { running, frozen, gone };
enum class readyz { ok, etcd_failed, other_failed, shutdown_failed, unauthorized };

/// One API server on its host. Members change as the scenario says.
struct api_server {
  bool link = true;  ///< its host's network
  process program = process::running;
  bool accepts = true;  ///< false: the port is closed, established connections live on
  readyz answer = readyz::ok;
  milliseconds answer_delay{2};
  double probe_loss = 0;  ///< share of probes that get no answer, at random
  int fails_each = 0;     ///< each so many-th probe gets no answer; 0: none
};

class world {
 public:
  explicit world(std::uint64_t seed) : random_(seed) {}

  time_point now{std::chrono::hours(1)};
  bool node_link = true;
  double packet_loss = 0;
  std::vector<api_server> servers;

  /// Whether a packet sent now arrives.
  bool arrives(const api_server& at) {
    return node_link && at.link && (packet_loss == 0 || random01() >= packet_loss);
  }
  double random01() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  milliseconds random_in(milliseconds from, milliseconds to);

 private:
  std::mt19937_64 random_;
};

/// A segment that is sent again until it arrives: at 0, 1, 3, 7, … times the retransmission time.
class segment {
 public:
  segment(time_point first, milliseconds retransmission)
      : first_(first), retransmission_(retransmission) {}
  /// Returns whether it has arrived by now.
  bool step(world& in, const api_server& at);
  time_point first() const { return first_; }
  int retransmissions() const { return tries_ - 1; }
  bool arrived() const { return arrived_; }

 private:
  time_point first_;
  milliseconds retransmission_;
  int tries_ = 0;
  bool arrived_ = false;
};

/// A request and its answer on an established connection.
class exchange {
 public:
  exchange(time_point sent, milliseconds processing)
      : request_(sent, milliseconds(200)), processing_(processing) {}
  /// Returns whether the answer has arrived by now.
  bool step(world& in, const api_server& at);
  const segment& request() const { return request_; }

 private:
  segment request_;
  milliseconds processing_;
  std::optional<time_point> processed_;
  std::optional<segment> answer_;
};

}  // namespace kubelane::sim
