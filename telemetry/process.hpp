#pragma once

#include <cstdint>
#include <optional>

namespace kubelane::telemetry {

/// What /proc/self says of this process; the usual `process_*` metrics.
struct process_figures {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t max_descriptors = 0;
  double start_time_seconds = 0;  ///< Unix time
};

/// Nothing if /proc cannot be read.
std::optional<process_figures> read_process_figures();

}  // namespace kubelane::telemetry
