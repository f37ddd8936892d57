#pragma once

#include <cstdint>

namespace traffic {

struct load {
  int streams = 25;      ///< full speed both ways
  int pingers = 20;      ///< a ping each 100 ms
  int silent = 5;        ///< one ping at their start, one at their end
  int answers = 0;       ///< one answer of 64 MiB after the other
  int fresh_every = 10;  ///< milliseconds between fresh connections; 0: none
};

/// Loads 127.0.0.1:port and obeys standard input:
///   `mark NAME`  prints what happened since the last mark, as JSON, and begins anew as NAME
///   `finish`     ends every connection in order, says what each stream saw, and returns
/// Connections that were lost are counted and opened again. The status is 0 if all ended in order.
int run_load(std::uint16_t port, const load& wanted);

}  // namespace traffic
