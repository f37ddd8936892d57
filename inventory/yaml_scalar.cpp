#include "inventory/yaml_scalar.hpp"

#include "inventory/yaml_time.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kubelane::inventory {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  return result;
}

// As written, in lower case, or with a capital first letter, and nothing between.
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const auto word : words) {
    if (lower(text) != word) continue;
    const bool all_upper = std::none_of(text.begin(), text.end(), [](char c) { return c >= 'a'; });
    const bool rest_lower = text.substr(1) == word.substr(1);
    if (rest_lower || all_upper) return true;
  }
  return false;
}

std::string without_underscores(std::string_view text) {
  std::string result(text);
  std::erase(result, '_');
  return result;
}

bool take_sign(std::string_view& text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return negative;
}

bool only(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

// Digits before the first colon, then parts of 0 to 59: `1:30`, `190:20:30`.
bool is_sexagesimal(std::string_view text) {
  auto colon = text.find(':');
  if (colon == std::string_view::npos || !is_digit(text.front())) return false;
  if (!only(text.substr(0, colon), "0123456789_")) return false;
  while (colon != std::string_view::npos) {
    text.remove_prefix(colon + 1);
    colon = text.find(':');
    const auto part = text.substr(0, colon);
    if (!only(part, "0123456789") || part.size() > 2) return false;
    if (part.size() == 2 && part.front() > '5') return false;
  }
  return true;
}

bool is_integer(std::string_view text) {
  take_sign(text);
  if (text.empty()) return false;
  if (text.size() > 2 && text.front() == '0' && text[1] == 'b') return only(text.substr(2), "01_");
  if (text.size() > 2 && text.front() == '0' && text[1] == 'x')
    return only(text.substr(2), "0123456789abcdefABCDEF_");
  if (text == "0") return true;
  if (text.front() == '0') return only(text.substr(1), "01234567_");
  if (text.front() == '_' || !is_digit(text.front())) return false;
  return only(text, "0123456789_") || is_sexagesimal(text);
}

bool is_exponent(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() < 3 || (text.front() != 'e' && text.front() != 'E')) return false;
  return (text[1] == '-' || text[1] == '+') && only(text.substr(2), "0123456789");
}

// With a point always; an exponent needs its sign. `1e3` is text.
bool is_real(std::string_view text) {
  const bool has_sign = !text.empty() && (text.front() == '-' || text.front() == '+');
  if (is_one_of(text, {".nan"}) && text != ".Nan") return true;
  if (text == ".NaN") return true;
  take_sign(text);
  if (text == ".inf" || text == ".Inf" || text == ".INF") return true;
  const auto point = text.find('.');
  if (point == std::string_view::npos) return false;
  const auto whole = text.substr(0, point);
  const auto rest = text.substr(point + 1);
  const auto fraction = std::min(rest.find_first_not_of("0123456789_"), rest.size());
  if (whole.empty())
    return !has_sign && fraction > 0 && is_digit(rest.front()) &&
           is_exponent(rest.substr(fraction));
  if (!is_digit(whole.front())) return false;
  if (only(whole, "0123456789_")) return is_exponent(rest.substr(fraction));
  return fraction == rest.size() && is_sexagesimal(whole);
}

std::string sexagesimal(std::string_view text) {
  std::string digits(text.substr(0, text.find(':')));
  // Long numbers do not occur; beyond 15 digits the value is the text.
  if (digits.size() > 15) return {};
  long long total = std::stoll(digits);
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':')) {
    text.remove_prefix(colon + 1);
    total = total * 60 + std::stoll(std::string(text.substr(0, text.find(':'))));
    if (total > 1'000'000'000'000'000) return {};
  }
  return std::to_string(total);
}

std::optional<value> integer(std::string_view written, place at) {
  const auto clean = without_underscores(written);
  std::string_view text = clean;
  const bool negative = take_sign(text);
  std::string digits;
  if (text == "0")
    digits = "0";
  else if (text.size() >= 2 && text[0] == '0' && text[1] == 'b')
    digits = text.size() > 2 ? to_decimal(text.substr(2), 2) : "";
  else if (text.size() >= 2 && text[0] == '0' && text[1] == 'x')
    digits = text.size() > 2 ? to_decimal(text.substr(2), 16) : "";
  else if (!text.empty() && text[0] == '0')
    digits = to_decimal(text, 8);
  else if (text.find(':') != std::string_view::npos)
    digits = sexagesimal(text);
  else
    digits = text;
  if (digits.empty()) return std::nullopt;
  if (digits.size() > 4300) return std::nullopt;
  return make_integer(negative && digits != "0" ? "-" + digits : digits, at);
}

std::optional<value> real(std::string_view written, place at) {
  const auto clean = lower(without_underscores(written));
  std::string_view text = clean;
  const bool negative = take_sign(text);
  double number = 0;
  if (text == ".inf") {
    number = HUGE_VAL;
  } else if (text == ".nan") {
    return make_real(std::nan(""), at);
  } else if (text.find(':') != std::string_view::npos) {
    double base = 1;
    std::string_view left = text;
    while (true) {
      const auto colon = left.rfind(':');
      const auto from = colon == std::string_view::npos ? 0 : colon + 1;
      number += base * std::strtod(std::string(left.substr(from)).c_str(), nullptr);
      if (colon == std::string_view::npos) break;
      left = left.substr(0, colon);
      base *= 60;
    }
  } else {
    number = std::strtod(std::string(text).c_str(), nullptr);
  }
  return make_real(negative ? -number : number, at);
}

bool is_boolean(std::string_view text) {
  return is_one_of(text, {"yes", "no", "true", "false", "on", "off"});
}

value boolean(std::string_view text, place at) {
  const auto low = lower(text);
  return make_boolean(low == "yes" || low == "true" || low == "on", at);
}

}  // namespace

std::optional<value> resolve_plain(std::string_view text, place at) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return make_null(at);
  if (text == "=") return std::nullopt;
  if (is_boolean(text)) return boolean(text, at);
  const char first = text.front();
  if (!is_digit(first) && first != '-' && first != '+' && first != '.')
    return make_text(std::string(text), at);
  if (is_real(text)) return real(text, at);
  if (is_integer(text)) return integer(text, at);
  if (is_time(text)) {
    auto time = iso_time(text);
    if (!time) return std::nullopt;
    return make_text(std::move(*time), at);
  }
  return make_text(std::string(text), at);
}

std::optional<value> resolve_tagged(std::string_view tag, std::string_view text, place at) {
  if (tag == "null") return make_null(at);
  if (tag == "bool") {
    const auto low = lower(text);
    for (const char* word : {"yes", "no", "true", "false", "on", "off"})
      if (low == word) return boolean(text, at);
    return std::nullopt;
  }
  if (tag == "int" && is_integer(text)) return integer(text, at);
  if (tag == "float" && (is_real(text) || is_integer(text))) return real(text, at);
  if (tag == "timestamp" && is_time(text))
    if (auto time = iso_time(text)) return make_text(std::move(*time), at);
  return std::nullopt;
}

}  // namespace kubelane::inventory
