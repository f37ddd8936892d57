#include "proxy/commands/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace kubelane::commands {
namespace {

constexpr std::string_view removed = "[removed]";
constexpr std::string_view key_label = "PRIVATE KEY";
/// A value follows these, after a colon, an equals sign or, for the last and for options, a blank.
constexpr std::array<std::string_view, 7> secret_names = {
    "token", "password", "passwd", "secret", "key-data", "authorization", "bearer"};
/// Settings of a systemd unit.
constexpr std::array<std::string_view, 3> secret_settings = {"Environment", "SetCredential",
                                                             "SetCredentialEncrypted"};
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

bool is_quote(char c) {
  return c == '"' || c == '\'';
}

/// `{"a":1}` and `{a: 1}`, where a value ends at a comma.
bool is_json(std::string_view line) {
  const auto at = line.find_first_not_of(" \t");
  return at != std::string_view::npos && (line[at] == '{' || line[at] == '[');
}

/// --token, -token, --bearer-token: the word that ends at `at`.
bool is_option(std::string_view line, std::size_t at) {
  while (at > 0 && is_word(line[at - 1])) --at;
  return at < line.size() && line[at] == '-';
}

/// Where a value begins, and what is between its name and it.
struct separation {
  std::size_t value = std::string_view::npos;  ///< npos: no value
  bool colon = false;
  bool blank =
      false;  ///< after a colon or an equals sign: the value has no quotes and may have blanks
};

separation value_after(std::string_view line, std::size_t at, bool blank_is_enough, bool option) {
  separation found;
  const auto start = at;
  while (at < line.size() && (is_quote(line[at]) || line[at] == '\\')) ++at;
  bool separated = false;
  for (; at < line.size(); ++at) {
    const char c = line[at];
    const bool sign = c == ':' || c == '=' || (option && (c == ',' || is_quote(c)));
    if (!sign && c != ' ' && c != '\t') break;
    // The quote of a value, not the one between an option and its value.
    if (separated && is_quote(c)) break;
    found.colon |= c == ':';
    found.blank |= separated && !sign;
    separated |= c == ':' || c == '=' || blank_is_enough;
  }
  if (separated && at > start) found.value = at;
  return found;
}

/// The quote at `at`, which `depth` backslashes precede, is of a text in so many quotes: the end of
/// that text. It is in the text itself if it has more backslashes than one at this depth.
std::size_t quoted_end(std::string_view line, std::size_t at, std::size_t depth) {
  const char quote = line[at];
  std::size_t backslashes = 0;
  for (++at; at < line.size(); ++at) {
    const bool twice = quote == '\'' && line.substr(at, 2) == "''";
    if (line[at] == quote && !twice && backslashes % (2 * (depth + 1)) == depth) return at + 1;
    if (twice) ++at;
    backslashes = line[at] == '\\' ? backslashes + 1 : 0;
  }
  return std::string_view::npos;
}

struct value_extent {
  std::size_t end = 0;
  bool whole = true;  ///< a quote is closed
};

value_extent extent(std::string_view line, std::size_t at, bool to_the_end) {
  const auto quote = line.find_first_not_of('\\', at);
  const bool json = is_json(line);
  if (quote != std::string_view::npos && is_quote(line[quote])) {
    auto end = quoted_end(line, quote, quote - at);
    if (end == std::string_view::npos) return {line.size(), false};
    while (!json && end < line.size() && !ends_value(line[end])) ++end;
    return {end, true};
  }
  // A name inside a JSON string: the value ends with the string at the latest.
  const bool in_string = json && std::count(line.begin(), line.begin() + at, '"') % 2 == 1;
  auto end = at;
  for (; end < line.size(); ++end) {
    const char c = line[end];
    if (json && c == '"' && (!in_string || line[end - 1] != '\\')) break;
    if (json && !in_string && (c == ',' || c == '}')) break;
    if (!to_the_end && std::isspace(static_cast<unsigned char>(c)) != 0) break;
  }
  return {end, true};
}

/// What the lines after one with a secret may have of it.
enum class rest_of_value { none, next_line, indented_lines };

/// Takes the value of `name` that follows `at`, if one does.
rest_of_value remove_value(std::string& line, std::size_t at, std::string_view name) {
  const bool option = is_option(line, at - name.size());
  const auto found = value_after(line, at, name == "bearer" || option, option);
  if (found.value == std::string_view::npos) return rest_of_value::none;
  const bool to_the_end = found.blank || name == "authorization";
  // `=Bearer abc`: the next name takes it.
  if (!to_the_end && lower(line.substr(found.value, 7)) == "bearer ") return rest_of_value::none;
  // After a colon YAML goes on in what is indented more; JSON in one line does not.
  const bool key = found.colon && !is_json(line);
  if (found.value == line.size()) {
    if (!key) return rest_of_value::none;
    line += line.back() == ' ' ? removed : " " + std::string(removed);
    return rest_of_value::indented_lines;
  }
  const auto [end, whole] = extent(line, found.value, to_the_end);
  const auto value = line.substr(found.value, end - found.value);
  line.replace(found.value, value.size(), removed);
  if (value == "\\") return rest_of_value::next_line;
  return key && (found.blank || !whole) ? rest_of_value::indented_lines : rest_of_value::none;
}

rest_of_value remove_named_values(std::string& line) {
  auto most = rest_of_value::none;
  for (const auto name : secret_names) {
    auto folded = lower(line);
    for (auto at = folded.find(name); at != std::string::npos; at = folded.find(name, at)) {
      at += name.size();
      most = std::max(most, remove_value(line, at, name));
      folded = lower(line);
    }
  }
  return most;
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

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") + 1 - from);
}

/// The equals sign of a setting of a unit whose value is secret, also one in a comment; npos: none.
std::size_t secret_setting(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) return equals;
  auto name = trimmed(line.substr(0, equals));
  const auto from = name.find_first_not_of("#; \t");
  name.remove_prefix(std::min(from, name.size()));
  const bool secret =
      std::find(secret_settings.begin(), secret_settings.end(), name) != secret_settings.end() &&
      !trimmed(line.substr(equals + 1)).empty();
  return secret ? equals : std::string_view::npos;
}

/// How far a key of YAML is indented, also one in a list or a comment.
std::size_t key_indentation(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() &&
         (line[at] == ' ' || line[at] == '\t' || line[at] == '#' || line.substr(at, 2) == "- "))
    ++at;
  return at;
}

/// Line after line: a secret may go on in the next.
class cleaner {
 public:
  /// Nothing if all of it is part of a secret whose first line is gone already.
  std::optional<std::string> clean(std::string line) {
    if (goes_on(line)) return std::nullopt;
    if (const auto equals = secret_setting(line); equals != std::string_view::npos) {
      continued_ = ends_with_backslash(line);
      return line.substr(0, equals + 1) + std::string(removed);
    }
    const auto indentation = key_indentation(line);
    const bool comment = trimmed(line).substr(0, 1) == "#";
    const auto rest = remove_named_values(line);
    continued_ = rest == rest_of_value::next_line;
    if (rest == rest_of_value::indented_lines) block_ = block{indentation, comment};
    remove_tokens(line);
    remove_passwords_in_urls(line);
    return line;
  }

 private:
  struct block {
    std::size_t indentation;
    bool comment;
  };

  static bool ends_with_backslash(std::string_view line) {
    const auto text = trimmed(line);
    return !text.empty() && text.back() == '\\';
  }

  bool goes_on(std::string_view line) {
    const auto text = trimmed(line);
    if (continued_) {
      // A comment between the lines of a setting does not end it.
      const bool comment = !text.empty() && (text[0] == '#' || text[0] == ';');
      continued_ = comment || ends_with_backslash(line);
      return true;
    }
    if (!block_) return false;
    const auto indentation = line.find_first_not_of(block_->comment ? " \t#" : " \t");
    if (text.empty() || indentation == std::string_view::npos)
      return false;  // in a block, or after
    if (indentation > block_->indentation) return true;
    block_.reset();
    return false;
  }

  bool continued_ = false;
  std::optional<block> block_;
};

}  // namespace

std::string redact(std::string_view text) {
  const auto whole = without_encoded_keys(without_keys(text));
  cleaner lines;
  std::string result;
  result.reserve(whole.size());
  std::string_view rest = whole;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto line = lines.clean(std::string(rest.substr(0, end)));
    if (line) result += *line;
    if (end == std::string_view::npos) break;
    if (line) result += '\n';
    rest.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace kubelane::commands
