#include "inventory/yaml_time.hpp"

#include <cstdio>

namespace kubelane::inventory {
namespace {

struct time_parts {
  int year = 0, month = 0, day = 0, hour = -1, minute = 0, second = 0;
  std::string fraction;
  bool utc = false;
  char sign = 0;
  int zone_hour = 0, zone_minute = 0;
};

class time_parser {
 public:
  explicit time_parser(std::string_view text) : text_(text) {}

  std::optional<time_parts> run() {
    const bool exact = text_.size() == 10;
    if (!number(4, 4, parts_.year) || !accept('-') || !number(1, 2, parts_.month) || !accept('-') ||
        !number(1, 2, parts_.day))
      return std::nullopt;
    if (text_.empty()) return exact ? std::optional(parts_) : std::nullopt;
    if (!accept('T') && !accept('t') && !blanks()) return std::nullopt;
    if (!number(1, 2, parts_.hour) || !accept(':') || !number(2, 2, parts_.minute) ||
        !accept(':') || !number(2, 2, parts_.second))
      return std::nullopt;
    if (accept('.'))
      while (is_digit()) parts_.fraction += take();
    blanks();
    if (!zone() || !text_.empty()) return std::nullopt;
    return parts_;
  }

 private:
  bool is_digit() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }

  char take() {
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }

  bool accept(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  bool blanks() {
    bool any = false;
    while (accept(' ') || accept('\t')) any = true;
    return any;
  }

  bool number(int least, int most, int& to) {
    int size = 0;
    to = 0;
    for (; size < most && is_digit(); ++size) to = to * 10 + (take() - '0');
    return size >= least;
  }

  bool zone() {
    if (text_.empty()) return true;
    if (accept('Z')) return parts_.utc = true;
    if (text_.front() != '+' && text_.front() != '-') return false;
    parts_.sign = take();
    if (!number(1, 2, parts_.zone_hour)) return false;
    return !accept(':') || number(2, 2, parts_.zone_minute);
  }

  std::string_view text_;
  time_parts parts_;
};

bool exists(const time_parts& t) {
  static constexpr int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (t.year < 1 || t.month < 1 || t.month > 12 || t.day < 1) return false;
  const bool leap = (t.year % 4 == 0 && t.year % 100 != 0) || t.year % 400 == 0;
  if (t.day > days[t.month - 1] + (t.month == 2 && leap ? 1 : 0)) return false;
  return t.hour < 24 && t.minute < 60 && t.second < 60 && t.zone_hour < 24;
}

}  // namespace

bool is_time(std::string_view text) {
  return time_parser(text).run().has_value();
}

std::optional<std::string> iso_time(std::string_view text) {
  const auto t = time_parser(text).run();
  if (!t || !exists(*t)) return std::nullopt;
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02d", t->year, t->month, t->day);
  std::string result = buffer;
  if (t->hour < 0) return result;
  std::snprintf(buffer, sizeof buffer, "T%02d:%02d:%02d", t->hour, t->minute, t->second);
  result += buffer;
  auto fraction = t->fraction.substr(0, 6);
  fraction.resize(6, '0');
  if (fraction != "000000") result += "." + fraction;
  if (t->utc) return result + "+00:00";
  if (t->sign != 0) {
    const bool zero = t->zone_hour == 0 && t->zone_minute == 0;
    std::snprintf(buffer, sizeof buffer, "%c%02d:%02d", zero ? '+' : t->sign, t->zone_hour,
                  t->zone_minute);
    result += buffer;
  }
  return result;
}

}  // namespace kubelane::inventory
