#pragma once

#include "telemetry/line_file.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubelane::telemetry {

enum class log_level { trace, debug, info, warn, error };
enum class log_format { text, json };

/// One `key=value` of a log line.
using field = std::pair<std::string_view, std::string>;

/// Lets `burst` lines of one key through in each `period`, and counts what it holds back.
class rate_limit {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  rate_limit(int burst, std::chrono::seconds period) : burst_(burst), period_(period) {}

  struct verdict {
    bool pass;
    int suppressed;  ///< lines of this key held back since the last one that passed
  };
  verdict check(const std::string& key, time_point now);

  struct rest {
    std::string key;
    int suppressed;
  };
  /// What was held back in periods that are over and no line has told since. Each is told once.
  std::vector<rest> take_rest(time_point now);

 private:
  struct window {
    time_point begun{};
    int passed = 0;
    int suppressed = 0;
  };
  int burst_;
  std::chrono::seconds period_;
  std::map<std::string, window, std::less<>> windows_;
};

/// `event in words key=value key="two words"`; values are quoted where a space or quote asks for
/// it.
std::string format_text(std::string_view event, const std::vector<field>& fields);
/// One JSON object: `event`, then the fields as strings.
std::string format_json(std::string_view level, std::string_view event,
                        const std::vector<field>& fields);

/// One line per event on standard error, with journald's priority prefix when it is the journal.
///
/// A helper thread writes, so a blocked journal never blocks the caller: the oldest lines are
/// dropped and counted, and before them those below level info that would come on top. From level
/// info up, more than ten lines of one event and `upstream` within ten seconds are held back, and
/// counted in the next that passes or by `tell_rest`.
class log {
 public:
  log(log_level level, log_format format);
  /// Waits at most 300 ms for what is queued.
  ~log();
  log(const log&) = delete;
  log& operator=(const log&) = delete;

  void set(log_level level, log_format format);
  /// Waits, for `limit` at most, until what was said is written.
  void flush(std::chrono::milliseconds limit);
  bool enabled(log_level level) const noexcept { return level >= level_; }

  void write(log_level level, std::string_view event, const std::vector<field>& fields = {});
  void error(std::string_view event, const std::vector<field>& fields = {});
  void warn(std::string_view event, const std::vector<field>& fields = {});
  void info(std::string_view event, const std::vector<field>& fields = {});
  void debug(std::string_view event, const std::vector<field>& fields = {});

  /// Says how many lines were held back, if their time is over. To be called now and then.
  void tell_rest();

  /// Lines lost because the reader of standard error was stuck.
  std::uint64_t dropped() const;

  /// From now on `keep` works. Once, before anything is kept.
  void keep_in(std::unique_ptr<line_file> file);
  /// Adds a line to that file, on the thread that writes all others.
  void keep(std::string_view line);
  /// The errno of the last line that could not be kept; 0 if it could.
  int keeping_failed() const;

 private:
  struct writer;
  void put(log_level level, std::string_view event, const std::vector<field>& fields);

  std::unique_ptr<writer> writer_;
  log_level level_;
  log_format format_;
  rate_limit limit_{10, std::chrono::seconds(10)};
  std::uint64_t left_out_ = 0;
};

}  // namespace kubelane::telemetry
