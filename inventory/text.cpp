#include "inventory/text.hpp"

#include <algorithm>

namespace kubelane::inventory {

code_point first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first >= 0xC2 && first < 0xE0 && follows(1))
    return {static_cast<char32_t>((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2};
  if (first >= 0xE0 && first < 0xF0 && follows(1) && follows(2))
    return {static_cast<char32_t>((first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F)),
            3};
  if (first >= 0xF0 && first < 0xF5 && follows(1) && follows(2) && follows(3))
    return {static_cast<char32_t>((first & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
                                  (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F)),
            4};
  return {first, 1};
}

bool is_space(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  if (c < 0x80)
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return !is_space(c);
}

namespace {

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

// A lone byte of 0x85 or 0xA0 is half of nothing, not a line end.
code_point at(std::string_view text, std::size_t offset) {
  auto point = first_code_point(text.substr(offset));
  if (point.size == 1 && point.is >= 0x80) point.is = 0xFFFD;
  return point;
}

}  // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size();) {
    const auto point = at(text, i);
    if (!ends_line(point.is)) {
      i += point.size;
      continue;
    }
    lines.push_back(text.substr(start, i - start));
    i += point.size;
    if (point.is == '\r' && i < text.size() && text[i] == '\n') ++i;
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string_view strip(std::string_view text) {
  while (!text.empty()) {
    const auto point = at(text, 0);
    if (!is_space(point.is)) break;
    text.remove_prefix(point.size);
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80 &&
           text.size() - start < 4)
      --start;
    const auto point = at(text, start);
    if (point.size != text.size() - start || !is_space(point.is)) break;
    text.remove_suffix(point.size);
  }
  return text;
}

namespace {

class word_splitter {
 public:
  explicit word_splitter(std::string_view line) : rest_(line) {}

  boost::system::result<std::vector<std::string>, text_error> run() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        finish();
      } else if (c == '#') {
        break;
      } else if (c == '\\') {
        if (rest_.empty()) return text_error{"nothing follows the backslash"};
        started_ = true;
        word_ += take();
      } else if (c == '"' || c == '\'') {
        if (!quoted(c)) return text_error{"no closing quotation mark"};
      } else {
        started_ = true;
        word_ += c;
      }
    }
    finish();
    return std::move(words_);
  }

 private:
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  void finish() {
    if (started_) words_.push_back(std::move(word_));
    word_.clear();
    started_ = false;
  }

  // False if the text ends first.
  bool quoted(char quote) {
    started_ = true;
    while (!rest_.empty()) {
      const char c = take();
      if (c == quote) return true;
      if (c != '\\' || quote != '"') {
        word_ += c;
        continue;
      }
      if (rest_.empty()) return false;
      const char escaped = take();
      if (escaped != '\\' && escaped != '"') word_ += '\\';
      word_ += escaped;
    }
    return false;
  }

  std::string_view rest_;
  std::vector<std::string> words_;
  std::string word_;
  bool started_ = false;
};

}  // namespace

boost::system::result<std::vector<std::string>, text_error> shell_words(std::string_view line) {
  return word_splitter(line).run();
}

void append_utf8(std::string& to, char32_t c) {
  const auto tail = [&](int shift) { to += static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0 | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0 | (c >> 12));
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xF0 | (c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

namespace {

// Insertions, removals, replacements and swaps of neighbours that make one text of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = 3;
  if (word.size() > 64) return best;
  for (const auto& candidate : candidates) {
    if (candidate == word || candidate.size() > 64) continue;
    const auto far = distance(word, candidate);
    if (far >= least || far * 3 > candidate.size()) continue;
    least = far;
    best = candidate;
  }
  return best;
}

}  // namespace kubelane::inventory
