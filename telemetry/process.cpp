#include "telemetry/process.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace kubelane::telemetry {
namespace {

double boot_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  double value = 0;
  while (file >> word)
    if (word == "btime" && file >> value) break;
  return value;
}

}  // namespace

std::optional<process_figures> read_process_figures() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto name_end = text.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0, start = 0;
  std::uint64_t virtual_bytes = 0, resident_pages = 0;
  fields >> user >> system;  // 14, 15
  for (int field = 16; field < 22; ++field) fields >> skipped;
  fields >> start >> virtual_bytes >> resident_pages;  // 22, 23, 24
  if (!fields) return std::nullopt;

  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  process_figures result;
  result.cpu_seconds = (user + system) / ticks;
  result.virtual_bytes = virtual_bytes;
  result.resident_bytes = resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) result.max_descriptors = limit.rlim_cur;
  static const double booted = boot_time();
  result.start_time_seconds = booted + start / ticks;
  return result;
}

}  // namespace kubelane::telemetry
