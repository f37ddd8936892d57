#include "inventory/hosts.hpp"

#include <boost/asio/ip/address_v6.hpp>

#include <algorithm>
#include <charconv>

namespace kubelane::inventory {
namespace {

using boost::system::result;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

// `[1:9]`, `[01:10:2]`, `[a:f]` (or in hexadecimal) at the start of `text`; 0 if there is none.
std::size_t range_size(std::string_view text, bool hexadecimal) {
  const auto close = text.find(']');
  if (text.empty() || text.front() != '[' || close == std::string_view::npos) return 0;
  auto inner = text.substr(1, close - 1);
  const auto colon = inner.find(':');
  if (colon == std::string_view::npos) return 0;
  const auto begin = inner.substr(0, colon);
  inner.remove_prefix(colon + 1);
  const auto second = inner.find(':');
  const auto end = inner.substr(0, second);
  if (second != std::string_view::npos && !all_digits(inner.substr(second + 1))) return 0;
  const auto is_hex = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  };
  const auto is_letter = [](std::string_view part) {
    return part.size() == 1 && letters.find(part) != std::string_view::npos;
  };
  const bool numeric = all_digits(begin) && all_digits(end);
  const bool other =
      hexadecimal ? is_hex(begin) && is_hex(end) : is_letter(begin) && is_letter(end);
  return numeric || other ? close + 1 : 0;
}

// Labels of word characters, dashes and ranges between points; none starts with a dash or ends with
// a dash or underscore. IPv4 addresses are among them.
bool is_host_name(std::string_view text) {
  bool first = true;
  char last = '-';
  while (!text.empty()) {
    if (text.front() == '.') {
      if (first || last == '-' || last == '_') return false;
      first = true;
      last = '.';
      text.remove_prefix(1);
      continue;
    }
    auto size = range_size(text, false);
    if (size == 0) {
      const auto point = first_code_point(text);
      const bool dash = text.front() == '-';
      if (!is_word(point.is) && !dash) return false;
      if (first && dash) return false;
      size = point.size;
    }
    last = text[size - 1];
    first = false;
    text.remove_prefix(size);
  }
  return !first && last != '-' && last != '_';
}

bool is_ipv6(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto size = range_size(text, true);
    plain += size == 0 ? text.front() : '0';
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(plain, error);
  return !error && plain.find('%') == std::string::npos;
}

struct split_port {
  std::string_view host;
  std::optional<int> port;
};

// `host:22` or `[host]:22`; the whole text if it does not end in a port.
split_port take_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || !all_digits(text.substr(colon + 1))) return {text, {}};
  const auto digits = text.substr(colon + 1);
  int port = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), port).ec != std::errc{})
    return {text, {}};
  auto host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']' &&
      (is_host_name(host.substr(1, host.size() - 2)) || is_ipv6(host.substr(1, host.size() - 2))))
    return {host.substr(1, host.size() - 2), port};
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (host[i] == ':' || host[i] == ']') return {text, {}};
    if (host[i] != '[') continue;
    i = host.find(']', i);
    if (i == std::string_view::npos) return {text, {}};
  }
  return is_host_name(host) ? split_port{host, port} : split_port{text, {}};
}

// As Python's int(): a sign, digits with single underscores.
std::optional<long> to_int(std::string_view text) {
  text = strip(text);
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '_' && i > 0 && is_digit(text[i - 1]) && i + 1 < text.size()) continue;
    digits += text[i];
  }
  if (!all_digits(digits) || digits.size() > 15) return std::nullopt;
  const long number = std::stol(digits);
  return negative ? -number : number;
}

std::string padded(std::string text, std::size_t width) {
  return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

struct range {
  std::string begin, end, step = "1";
};

result<range, text_error> parse_range(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (parts.size() != 2 && parts.size() != 3)
    return text_error{"a range of hosts is [begin:end] or [begin:end:step]"};
  range found{parts[0].empty() ? "0" : parts[0], parts[1]};
  if (parts.size() == 3) found.step = parts[2];
  if (found.end.empty()) return text_error{"a range of hosts needs its end, as in [1:5]"};
  if (found.begin.size() > 1 && found.begin.front() == '0' &&
      found.begin.size() != found.end.size())
    return text_error{"both ends of a padded range have the same length, as in [01:10]"};
  return found;
}

result<std::vector<std::string>, text_error> letters_of(const range& of, std::size_t width) {
  const auto begin = letters.find(of.begin);
  const auto end = letters.find(of.end);
  if (begin > end) return text_error{"a range of hosts ends before it begins"};
  const auto step = to_int(of.step);
  if (!step || *step == 0) return text_error{"a range's step is a number other than 0"};
  std::vector<std::string> names;
  if (*step < 0) return names;
  for (std::size_t i = begin; i <= end; i += static_cast<std::size_t>(*step))
    names.push_back(padded(std::string(1, letters[i]), width));
  return names;
}

result<std::vector<std::string>, text_error> elements(const range& of) {
  const bool is_padded = of.begin.size() > 1 && of.begin.front() == '0';
  const auto width = is_padded ? of.begin.size() : 0;
  if (letters.find(of.begin) != std::string_view::npos &&
      letters.find(of.end) != std::string_view::npos)
    return letters_of(of, width);
  const auto begin = to_int(of.begin), end = to_int(of.end), step = to_int(of.step);
  if (!begin || !end || !step || *step == 0)
    return text_error{"a range of hosts has two numbers or two letters, as in [1:5] or [a:c]"};
  std::vector<std::string> names;
  for (long i = *begin; *step > 0 ? i <= *end : i > *end + 1; i += *step) {
    if (names.size() >= most_hosts) return text_error{"a range of more than 200000 hosts"};
    names.push_back(padded(std::to_string(i), width));
  }
  return names;
}

// `budget` bounds the work too: ranges may be empty, and then no name is ever added.
std::optional<text_error> expand(std::string_view line, std::vector<std::string>& names,
                                 std::size_t& budget) {
  if (budget-- == 0) return text_error{"more than 200000 hosts"};
  const auto open = line.find('[');
  if (open == std::string_view::npos) {
    names.emplace_back(line);
    return std::nullopt;
  }
  const auto close = line.find(']');
  if (close == std::string_view::npos || line.find('|') != std::string_view::npos)
    return text_error{"a range of hosts is not closed, as in [1:5]"};
  const auto first = std::min(open, close), second = std::max(open, close);
  const auto found = parse_range(line.substr(first + 1, second - first - 1));
  if (!found) return found.error();
  const auto parts = elements(*found);
  if (!parts) return parts.error();
  for (const auto& part : *parts) {
    const auto name =
        std::string(line.substr(0, first)) + part + std::string(line.substr(second + 1));
    if (auto failure = expand(name, names, budget)) return failure;
  }
  return std::nullopt;
}

}  // namespace

result<host_names, text_error> expand_hosts(std::string_view pattern) {
  const auto [host, port] = take_port(pattern);
  host_names result;
  result.port = port;
  if (std::count(host.begin(), host.end(), '[') > 16)
    return text_error{"more than 16 ranges in one name"};
  auto budget = most_hosts + 1;
  if (auto failure = expand(host, result.names, budget)) return *failure;
  result.work = most_hosts + 1 - budget;
  return result;
}

}  // namespace kubelane::inventory
