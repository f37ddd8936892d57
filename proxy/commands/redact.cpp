#include "proxy/commands/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace kubelane::commands {
namespace {

constexpr std::string_view removed = "[removed]";
constexpr std::string_view key_label = "PRIVATE KEY";
/// A value follows these, after a colon, an equals sign or, for the last, a blank.
constexpr std::array<std::string_view, 7> secret_names = {
    "token", "password", "passwd", "secret", "key-data", "authorization", "bearer"};
constexpr std::size_t shortest_base64 = 12;

bool is_base64(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=' ||
         c == '-' || c == '_';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

bool ends_value(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',' || c == '}' || c == ';';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (auto& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// How `text` looks in the middle of base64, without the digits that depend on what is around it.
std::string in_base64(std::string_view text, std::size_t bytes_before) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  const auto bits = (bytes_before + text.size()) * 8;
  for (auto at = (bytes_before * 8 + 5) / 6 * 6; at + 6 <= bits; at += 6) {
    unsigned value = 0;
    for (std::size_t bit = at; bit < at + 6; ++bit) {
      const auto byte = static_cast<unsigned char>(text[bit / 8 - bytes_before]);
      value = value << 1 | (byte >> (7 - bit % 8) & 1U);
    }
    result += digits[value];
  }
  return result;
}

bool encodes_a_key(std::string_view run) {
  static const std::array<std::string, 3> needles = {
      in_base64(key_label, 0), in_base64(key_label, 1), in_base64(key_label, 2)};
  return std::any_of(needles.begin(), needles.end(), [&](const std::string& each) {
    return run.find(each) != std::string_view::npos;
  });
}

/// PEM blocks of private keys; one without an end goes to the end of the text.
std::string without_keys(std::string_view text) {
  constexpr std::string_view begin = "-----BEGIN ";
  constexpr std::string_view dashes = "-----";
  std::string result;
  for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin)) {
    const auto label_at = at + begin.size();
    const auto label_end = text.find(dashes, label_at);
    const auto label = text.substr(label_at, std::min(label_end, text.size()) - label_at);
    if (label.find(key_label) == std::string_view::npos || label.size() > 64) {
      result += text.substr(0, label_at);
      text.remove_prefix(label_at);
      continue;
    }
    result += text.substr(0, at);
    result += removed;
    const auto end = text.find("-----END ", label_at);
    const auto last = end == std::string_view::npos ? end : text.find(dashes, end + dashes.size());
    text.remove_prefix(last == std::string_view::npos ? text.size() : last + dashes.size());
  }
  return result + std::string(text);
}

std::size_t run_length(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_base64) -
                                  text.begin());
}

/// Base64 that may be wrapped: a run, and the whole lines of it that follow.
struct encoded {
  std::size_t size = 0;  ///< of all of it in the text
  std::string digits;
};

encoded encoded_at(std::string_view text) {
  encoded found{run_length(text), {}};
  found.digits = text.substr(0, found.size);
  while (found.size < text.size() && (text[found.size] == '\n' || text[found.size] == '\r')) {
    const auto line = std::min(text.find_first_not_of(" \t\r\n", found.size), text.size());
    const auto length = run_length(text.substr(line));
    const bool whole =
        line + length == text.size() || text[line + length] == '\n' || text[line + length] == '\r';
    if (length == 0 || !whole) break;
    found.digits += text.substr(line, length);
    found.size = line + length;
  }
  return found;
}

std::string without_encoded_keys(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    auto length = run_length(text);
    if (length >= shortest_base64) {
      const auto found = encoded_at(text);
      length = found.size;
      if (encodes_a_key(found.digits)) {
        result += removed;
        text.remove_prefix(length);
        continue;
      }
    }
    length = std::max<std::size_t>(length, 1);
    result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

/// Where the value begins that belongs to the name that ends at `at`; npos: there is none.
std::size_t value_after(std::string_view line, std::size_t at, bool blank_is_enough) {
  const auto start = at;
  while (at < line.size() && (line[at] == '"' || line[at] == '\'')) ++at;
  bool separated = blank_is_enough && at < line.size() && line[at] == ' ';
  while (at < line.size() && (line[at] == ' ' || line[at] == ':' || line[at] == '=')) {
    separated |= line[at] != ' ';
    ++at;
  }
  return separated && at > start && at < line.size() ? at : std::string_view::npos;
}

/// The end of the value at `at`: of its quotes, if it has some.
std::size_t value_end(std::string_view line, std::size_t at) {
  if (line[at] == '"' || line[at] == '\'') {
    const auto end = line.find(line[at], at + 1);
    return end == std::string_view::npos ? line.size() : end + 1;
  }
  while (at < line.size() && !ends_value(line[at])) ++at;
  return at;
}

void remove_named_values(std::string& line) {
  for (const auto name : secret_names) {
    auto folded = lower(line);
    for (auto at = folded.find(name); at != std::string::npos; at = folded.find(name, at)) {
      at += name.size();
      const auto value = value_after(line, at, name == "bearer");
      if (value == std::string::npos || lower(line.substr(value, 6)) == "bearer") continue;
      line.replace(value, value_end(line, value) - value, removed);
      folded = lower(line);
    }
  }
}

bool is_signed_token(std::string_view word) {
  return word.rfind("eyJ", 0) == 0 && std::count(word.begin(), word.end(), '.') >= 2;
}

/// As kubeadm makes them: six characters, a dot, sixteen.
bool is_bootstrap_token(std::string_view word) {
  if (word.size() != 23 || word[6] != '.') return false;
  return std::all_of(word.begin(), word.end(), [](char c) {
    return c == '.' || std::isdigit(static_cast<unsigned char>(c)) != 0 ||
           std::islower(static_cast<unsigned char>(c)) != 0;
  });
}

void remove_tokens(std::string& line) {
  for (std::size_t at = 0; at < line.size();) {
    const auto is_part = [](char c) { return is_word(c) || c == '.'; };
    const auto end = static_cast<std::size_t>(
        std::find_if_not(line.begin() + static_cast<std::ptrdiff_t>(at), line.end(), is_part) -
        line.begin());
    const std::string_view word(line.data() + at, end - at);
    if (is_signed_token(word) || is_bootstrap_token(word)) {
      line.replace(at, word.size(), removed);
      at += removed.size();
    } else {
      at = end + 1;
    }
  }
}

void remove_passwords_in_urls(std::string& line) {
  for (auto at = line.find("://"); at != std::string::npos; at = line.find("://", at)) {
    at += 3;
    const auto end = line.find_first_of("/ \"'", at);
    const auto sign = line.rfind('@', std::min(end, line.size()));
    if (sign == std::string::npos || sign < at) continue;
    line.replace(at, sign - at, removed);
  }
}

std::string clean(std::string line) {
  constexpr std::string_view environment = "Environment=";
  if (line.rfind(environment, 0) == 0 && line.size() > environment.size())
    return std::string(environment) + std::string(removed);
  remove_named_values(line);
  remove_tokens(line);
  remove_passwords_in_urls(line);
  return line;
}

}  // namespace

std::string redact(std::string_view text) {
  const auto whole = without_encoded_keys(without_keys(text));
  std::string result;
  result.reserve(whole.size());
  std::string_view rest = whole;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    result += clean(std::string(rest.substr(0, end)));
    if (end == std::string_view::npos) break;
    result += '\n';
    rest.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace kubelane::commands
