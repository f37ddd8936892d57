#include "inventory/value.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kubelane::inventory {

value make_null(place at) {
  value result;
  result.at = at;
  return result;
}

value make_boolean(bool truth, place at) {
  value result;
  result.is = value::kind::boolean;
  result.truth = truth;
  result.at = at;
  return result;
}

value make_integer(std::string digits, place at) {
  value result;
  result.is = value::kind::integer;
  result.text = std::move(digits);
  result.at = at;
  return result;
}

value make_real(double number, place at) {
  value result;
  result.is = value::kind::real;
  result.number = number;
  result.at = at;
  return result;
}

value make_text(std::string text, place at) {
  value result;
  result.is = value::kind::text;
  result.text = std::move(text);
  result.at = at;
  return result;
}

const value* find(const value& of, std::string_view key) {
  if (of.is != value::kind::mapping) return nullptr;
  for (const auto& entry : of.members)
    if (entry.key == key) return &entry.content;
  return nullptr;
}

// Mappings of thousands of hosts are common, so equal keys are found by sorting.
std::vector<repeated_key> unite_keys(std::vector<member>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return members[a].key < members[b].key; });
  std::vector<repeated_key> repeated;
  std::vector<bool> gone(members.size());
  for (std::size_t i = 0; i < order.size();) {
    auto& first = members[order[i]];
    std::size_t last = i;
    while (last + 1 < order.size() && members[order[last + 1]].key == first.key)
      gone[order[++last]] = true;
    if (last > i) {
      repeated.push_back({first.key, first.at, members[order[last]].at});
      first.at = members[order[last]].at;
      first.content = std::move(members[order[last]].content);
    }
    i = last + 1;
  }
  if (repeated.empty()) return repeated;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) members[kept] = std::move(members[i]);
    ++kept;
  }
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
  return repeated;
}

bool is_true(const value& of) {
  switch (of.is) {
    case value::kind::null:
      return false;
    case value::kind::boolean:
      return of.truth;
    case value::kind::integer:
      return of.text != "0";
    case value::kind::real:
      return of.number != 0;
    case value::kind::text:
      return !of.text.empty();
    case value::kind::list:
      return !of.items.empty();
    case value::kind::mapping:
      return !of.members.empty();
    case value::kind::vault:
      return true;
  }
  return false;
}

std::string real_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string scalar_text(const value& of) {
  switch (of.is) {
    case value::kind::null:
      return "null";
    case value::kind::boolean:
      return of.truth ? "true" : "false";
    case value::kind::real:
      return real_text(of.number);
    case value::kind::integer:
    case value::kind::text:
      return of.text;
    case value::kind::list:
      return "a list";
    case value::kind::mapping:
      return "a mapping";
    case value::kind::vault:
      return "an encrypted value";
  }
  return {};
}

bool has_template(const value& of) {
  if (of.is == value::kind::text && !of.is_unsafe)
    for (const char* mark : {"{{", "{%", "{#"})
      if (of.text.find(mark) != std::string::npos) return true;
  return std::any_of(of.items.begin(), of.items.end(), has_template) ||
         std::any_of(of.members.begin(), of.members.end(),
                     [](const member& entry) { return has_template(entry.content); });
}

namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return (c | 0x20) - 'a' + 10;
}

}  // namespace

std::string to_decimal(std::string_view digits, int base) {
  std::vector<int> parts{0};  // base 10^9, least significant first
  for (const char c : digits) {
    long long carry = digit_of(c);
    for (auto& part : parts) {
      const long long sum = static_cast<long long>(part) * base + carry;
      part = static_cast<int>(sum % 1'000'000'000);
      carry = sum / 1'000'000'000;
    }
    if (carry != 0) parts.push_back(static_cast<int>(carry));
  }
  std::string text = std::to_string(parts.back());
  for (auto part = parts.rbegin() + 1; part != parts.rend(); ++part) {
    const auto nine = std::to_string(*part);
    text += std::string(9 - nine.size(), '0') + nine;
  }
  return text;
}

}  // namespace kubelane::inventory
