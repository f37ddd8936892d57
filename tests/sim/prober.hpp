#pragma once

#include "network.hpp"

#include <optional>
#include <vector>

namespace kubelane::sim {

/// One upstream's probes as the checker does them: a held connection, a fresh one every thirtieth
/// time (the held one is given up when that has answered) and after a time-out, each phase limited,
/// and the kernel's word on the held connection.
class prober {
 public:
  prober(std::size_t server, milliseconds limit) : server_(server), limit_(limit) {}

  bool in_flight() const { return current_.has_value(); }
  enum class on { any_connection, new_connection };
  void start(world& in, on which = on::any_connection);
  /// A finished probe.
  std::optional<health::probe_report> step(world& in);
  /// A probe that timed out within the last five seconds and was answered just now.
  std::optional<health::probe_report> late_answer(world& in);
  /// Whether the kernel found the host silent just now.
  bool finds_host_silent(world& in);
  /// Whether the held connection ended just now because its process did.
  bool finds_connection_ended(world& in);

 private:
  struct attempt {
    time_point started{};
    health::phase reached = health::phase::connect;
    time_point phase_started{};
    std::optional<segment> syn = {};
    std::optional<exchange> round = {};
    bool fresh = false;
    bool swallowed = false;  // this probe gets no answer
  };
  struct held_connection {
    time_point heard;       // last acknowledgement
    int unanswered = 0;     // keep-alives in a row
    time_point next_alive;  // when the next keep-alive is due
  };
  std::optional<health::probe_report> connect(world& in, api_server& at);
  std::optional<health::probe_report> handshake(world& in, api_server& at);
  std::optional<health::probe_report> ask(world& in, api_server& at);
  health::probe_report give_up(world& in);
  static void tell(health::probe_report& report, const api_server& at);
  health::probe_report finish(world& in, health::outcome result);
  void next_phase(world& in, health::phase reached, milliseconds processing);

  std::size_t server_;
  milliseconds limit_;
  std::optional<attempt> current_;
  std::optional<held_connection> held_;
  std::optional<segment> watched_;  // the request of a held connection that timed out
  struct witness {
    exchange round;
    health::probe_report given_up;
  };
  std::vector<witness> witnesses_;
  int on_connection_ = 0;
  int probes_ = 0;
};

}  // namespace kubelane::sim
