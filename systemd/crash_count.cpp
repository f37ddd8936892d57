#include "systemd/crash_count.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
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

std::optional<std::int64_t> number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc() || end != digits.end() || value < 0) return std::nullopt;
  return value;
}

std::optional<time> parse_line(std::string_view line, boot current) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto began = number(line.substr(0, space));
  const auto at = number(line.substr(space + 1));
  if (!began || !at || std::chrono::abs(boot(*began) - current) > same_boot) return std::nullopt;
  return time(*at);
}

std::chrono::nanoseconds read_clock(clockid_t which) {
  timespec at{};
  ::clock_gettime(which, &at);
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
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

std::vector<time> parse(std::string_view text, boot current) {
  std::vector<time> times;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (const auto at = parse_line(text.substr(0, end), current)) times.push_back(*at);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return times;
}

std::string format(std::span<const time> times, boot current) {
  std::string text;
  for (const auto at : times.last(std::min(times.size(), remembered)))
    text += std::to_string(current.count()) + ' ' + std::to_string(at.count()) + '\n';
  return text;
}

boot current_boot() {
  return std::chrono::round<boot>(read_clock(CLOCK_REALTIME) - read_clock(CLOCK_BOOTTIME));
}

time now() {
  return std::chrono::duration_cast<time>(read_clock(CLOCK_BOOTTIME));
}

std::vector<time> read(const std::string& folder) {
  return parse(read_text(path_in(folder)), current_boot());
}

std::optional<std::string> note(const std::string& folder) {
  auto times = read(folder);
  times.push_back(now());
  const auto path = path_in(folder);
  const auto unfinished = path + ".new";
  std::ofstream file(unfinished, std::ios::trunc);
  file << format(times, current_boot());
  file.close();
  if (!file) return failure("write", unfinished);
  // Not synced: a file that a power cut takes away is of a boot that counts for nothing.
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) return failure("replace", path);
  return std::nullopt;
}

void forget(const std::string& folder) {
  std::remove(path_in(folder).c_str());
}

}  // namespace kubelane::systemd::crash_count
