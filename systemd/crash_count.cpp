#include "systemd/crash_count.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

namespace kubelane::systemd::crash_count {
namespace {

using namespace std::chrono_literals;

std::string path_in(const std::string& folder) {
  return folder + "/crashes";
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string failure(const char* what, const std::string& path) {
  return std::string("cannot ") + what + " " + path + ": " + std::strerror(errno);
}

std::optional<time> parse_line(std::string_view line, std::string_view boot_id) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos || line.substr(0, space) != boot_id) return std::nullopt;
  const auto digits = line.substr(space + 1);
  time::rep count = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), count);
  if (error != std::errc() || end != digits.end() || count < 0) return std::nullopt;
  return time(count);
}

}  // namespace

bool is_crash(std::string_view service_result, std::string_view exit_status) {
  constexpr std::array<std::string_view, 5> fatal = {"SEGV", "ABRT", "BUS", "ILL", "FPE"};
  if (service_result == "watchdog") return true;
  if (service_result != "signal" && service_result != "core-dump") return false;
  return std::find(fatal.begin(), fatal.end(), exit_status) != fatal.end();
}

bool too_many(std::span<const time> times, time now) {
  const auto within = [&](time limit) {
    return std::count_if(times.begin(), times.end(),
                         [&](time at) { return at <= now && now - at <= limit; });
  };
  return within(10s) >= 3 || within(10min) >= 5;
}

std::vector<time> parse(std::string_view text, std::string_view boot_id) {
  std::vector<time> times;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto at = parse_line(text.substr(0, end), boot_id)) times.push_back(*at);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return times;
}

std::string format(std::span<const time> times, std::string_view boot_id) {
  std::string text;
  for (const auto at : times.last(std::min(times.size(), remembered)))
    text.append(boot_id).append(" ").append(std::to_string(at.count())).append("\n");
  return text;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string line;
  std::getline(file, line);
  return line;
}

time now() {
  timespec at{};
  ::clock_gettime(CLOCK_BOOTTIME, &at);
  return std::chrono::duration_cast<time>(std::chrono::seconds(at.tv_sec) +
                                          std::chrono::nanoseconds(at.tv_nsec));
}

std::vector<time> read(const std::string& folder) {
  return parse(read_text(path_in(folder)), boot_id());
}

std::optional<std::string> note(const std::string& folder) {
  auto times = read(folder);
  times.push_back(now());
  const auto path = path_in(folder);
  const auto unfinished = path + ".new";
  std::ofstream file(unfinished, std::ios::trunc);
  file << format(times, boot_id());
  file.close();
  if (!file) return failure("write", unfinished);
  // Not synced: a file that a power cut takes away is of a boot that counts for nothing.
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return failure("replace", path);
  return std::nullopt;
}

}  // namespace kubelane::systemd::crash_count
