#include "telemetry/log.hpp"

#include <boost/json.hpp>
#include <spdlog/async.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>

namespace kubelane::telemetry {
namespace {

constexpr std::size_t queue_lines = 256;  // 408 bytes each, whether used or not

/// True if standard error is the stream systemd connected to its journal.
bool writes_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &info) != 0) return false;
  return stream == std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

const char* name_of(log_level level) {
  switch (level) {
    case log_level::trace:
      return "trace";
    case log_level::debug:
      return "debug";
    case log_level::info:
      return "info";
    case log_level::warn:
      return "warn";
    case log_level::error:
      return "error";
  }
  return "error";
}

spdlog::level::level_enum spdlog_level(log_level level) {
  switch (level) {
    case log_level::trace:
      return spdlog::level::trace;
    case log_level::debug:
      return spdlog::level::debug;
    case log_level::info:
      return spdlog::level::info;
    case log_level::warn:
      return spdlog::level::warn;
    case log_level::error:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// syslog(3) priorities, as sd-daemon(3) reads them at the start of a line.
const char* journal_prefix(log_level level) {
  switch (level) {
    case log_level::trace:
    case log_level::debug:
      return "<7>";
    case log_level::info:
      return "<6>";
    case log_level::warn:
      return "<4>";
    case log_level::error:
      return "<3>";
  }
  return "<3>";
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value)
    if (c == ' ' || c == '"' || c == '=' || static_cast<unsigned char>(c) < 0x20) return true;
  return false;
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(millis));
  return text;
}

}  // namespace

rate_limit::verdict rate_limit::check(const std::string& key, time_point now) {
  if (windows_.size() > 1000) windows_.clear();  // keys are few; hostile ones must not grow it
  auto& current = windows_[key];
  if (current.begun == time_point{} || now - current.begun >= period_) {
    const int suppressed = current.suppressed;
    current = {now, 1, 0};
    return {true, suppressed};
  }
  if (current.passed < burst_) {
    ++current.passed;
    return {true, 0};
  }
  ++current.suppressed;
  return {false, 0};
}

std::vector<rate_limit::rest> rate_limit::take_rest(time_point now) {
  std::vector<rest> result;
  for (auto& [key, seen] : windows_)
    if (seen.suppressed > 0 && now - seen.begun >= period_)
      result.push_back({key, std::exchange(seen.suppressed, 0)});
  return result;
}

std::string format_text(std::string_view event, const std::vector<field>& fields) {
  std::string line(event);
  for (const auto& [key, value] : fields) {
    line += ' ';
    line += key;
    line += '=';
    line += needs_quotes(value) ? boost::json::serialize(boost::json::string(value)) : value;
  }
  return line;
}

std::string format_json(std::string_view level, std::string_view event,
                        const std::vector<field>& fields) {
  boost::json::object line;
  line["time"] = timestamp();
  line["level"] = level;
  line["event"] = event;
  for (const auto& [key, value] : fields) line[key] = value;
  return boost::json::serialize(line);
}

// While two threads share a table of descriptors, each system call counts its user up and down; the
// data path would pay for that. The thread that writes lines needs standard error alone.
void own_descriptors() {
  static_cast<void>(close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_UNSHARE));
}

/// Takes what is to be kept; called by the thread that writes lines.
struct kept_lines final : spdlog::sinks::sink {
  explicit kept_lines(std::unique_ptr<line_file> to) : file(std::move(to)) {}

  void log(const spdlog::details::log_msg& line) override {
    failure = file->add({line.payload.data(), line.payload.size()});
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

  std::unique_ptr<line_file> file;
  std::atomic<int> failure{0};
};

struct log::writer {
  std::shared_ptr<spdlog::details::thread_pool> pool =
      std::make_shared<spdlog::details::thread_pool>(queue_lines, 1, own_descriptors);
  std::shared_ptr<spdlog::async_logger> logger = std::make_shared<spdlog::async_logger>(
      "kubelane", std::make_shared<spdlog::sinks::stderr_sink_mt>(), pool,
      spdlog::async_overflow_policy::overrun_oldest);
  bool journal = writes_to_journal();
  std::shared_ptr<kept_lines> kept;
  std::shared_ptr<spdlog::async_logger> keeper;  // none: nothing is kept

  writer() {
    logger->set_pattern("%v", spdlog::pattern_time_type::utc);
    logger->set_level(spdlog::level::trace);
  }
};

log::log(log_level level, log_format format)
    : writer_(std::make_unique<writer>()), level_(level), format_(format) {}

log::~log() {
  using namespace std::chrono_literals;
  for (int tries = 0; tries < 30 && writer_->pool->queue_size() > 0; ++tries)
    std::this_thread::sleep_for(10ms);
  // The pool's destructor joins its thread, which may be stuck in a write to a full pipe for ever.
  if (writer_->pool->queue_size() > 0) static_cast<void>(writer_.release());
}

void log::flush(std::chrono::milliseconds limit) {
  using namespace std::chrono_literals;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (writer_->pool->queue_size() > 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(1ms);  // the last line has left the queue, and may not be out yet
}

void log::set(log_level level, log_format format) {
  level_ = level;
  format_ = format;
}

void log::write(log_level level, std::string_view event, const std::vector<field>& fields) {
  if (!enabled(level)) return;
  auto all = fields;
  if (level >= log_level::info) {  // who asks for debug wants every line
    auto key = std::string(event);
    for (const auto& [name, value] : fields)
      if (name == "upstream") key += ' ' + value;
    const auto [pass, suppressed] = limit_.check(key, std::chrono::steady_clock::now());
    if (!pass) return;
    if (suppressed > 0) all.emplace_back("suppressed", std::to_string(suppressed));
  }
  put(level, event, all);
}

void log::tell_rest() {
  for (const auto& [key, suppressed] : limit_.take_rest(std::chrono::steady_clock::now()))
    put(log_level::info, "lines left out",
        {{"event", key}, {"suppressed", std::to_string(suppressed)}});
}

void log::put(log_level level, std::string_view event, const std::vector<field>& fields) {
  if (!enabled(level)) return;
  // Details come in thousands, and would push out what matters.
  if (level < log_level::info && writer_->pool->queue_size() >= queue_lines / 2) {
    ++left_out_;
    return;
  }
  std::string line;
  if (format_ == log_format::json) {
    line = format_json(name_of(level), event, fields);
  } else {
    line = format_text(event, fields);
    if (!writer_->journal) line = timestamp() + ' ' + name_of(level) + ' ' + line;
  }
  if (writer_->journal) line = journal_prefix(level) + line;
  writer_->logger->log(spdlog_level(level), spdlog::string_view_t(line));
}

void log::error(std::string_view event, const std::vector<field>& fields) {
  write(log_level::error, event, fields);
}
void log::warn(std::string_view event, const std::vector<field>& fields) {
  write(log_level::warn, event, fields);
}
void log::info(std::string_view event, const std::vector<field>& fields) {
  write(log_level::info, event, fields);
}
void log::debug(std::string_view event, const std::vector<field>& fields) {
  write(log_level::debug, event, fields);
}

void log::keep_in(std::unique_ptr<line_file> file) {
  writer_->kept = std::make_shared<kept_lines>(std::move(file));
  writer_->keeper = std::make_shared<spdlog::async_logger>(
      "kept", writer_->kept, writer_->pool, spdlog::async_overflow_policy::overrun_oldest);
}

void log::keep(std::string_view line) {
  if (writer_->keeper)
    writer_->keeper->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

int log::keeping_failed() const {
  return writer_->kept ? writer_->kept->failure.load() : 0;
}

std::uint64_t log::dropped() const {
  return writer_->pool->overrun_counter() + left_out_;
}

}  // namespace kubelane::telemetry
