#pragma once

#include "sockets.hpp"

#include <string>

namespace traffic {

/// What happened between two marks.
struct window {
  std::string name = "start";
  std::int64_t began = now();
  int lost = 0;             ///< established connections that ended
  std::uint64_t wrong = 0;  ///< bytes that were not what they must be
  int refused = 0;          ///< fresh connects
  int fresh = 0;            ///< fresh connections that were answered
  int fresh_ended = 0;      ///< fresh connections that ended without an answer
  int fresh_stuck = 0;      ///< fresh connections without an answer in five seconds
  std::int64_t slowest_fresh = 0;
  int pongs = 0;
  std::int64_t stall = 0;       ///< a ping's longest way, from when it was due
  std::int64_t stream_gap = 0;  ///< the longest time a stream received nothing
  std::uint64_t bytes = 0;      ///< streams and answers, both ways
  int answers = 0;
  std::int64_t last_loss = 0;  ///< since the mark
  int waiting = 0;             ///< connections that wait for an answer at its end

  void lose() {
    ++lost;
    last_loss = now() - began;
  }

  void print() const {
    const auto ms = [](std::int64_t t) { return static_cast<double>(t) / 1e6; };
    std::printf(
        "{\"event\":\"%s\",\"ms\":%.1f,\"lost\":%d,\"wrong\":%llu,\"refused\":%d,\"fresh\":%d,"
        "\"fresh_ended\":%d,\"fresh_stuck\":%d,\"slowest_fresh_ms\":%.1f,\"pongs\":%d,"
        "\"stall_ms\":%.1f,\"stream_gap_ms\":%.1f,\"mib\":%.0f,\"answers\":%d,"
        "\"last_loss_ms\":%.1f,\"waiting\":%d}\n",
        name.c_str(), ms(now() - began), lost, static_cast<unsigned long long>(wrong), refused,
        fresh, fresh_ended, fresh_stuck, ms(slowest_fresh), pongs, ms(stall), ms(stream_gap),
        static_cast<double>(bytes) / (1 << 20), answers, ms(last_loss), waiting);
    std::fflush(stdout);
  }
};

}  // namespace traffic
