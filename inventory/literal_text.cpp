#include "inventory/literal_text.hpp"

#include "inventory/text.hpp"

#include <algorithm>

namespace kubelane::inventory {
namespace {

struct prefix {
  bool raw = false;
  bool bytes = false;
  std::size_t size = 0;
};

std::optional<prefix> read_prefix(std::string_view text) {
  prefix result;
  const auto quote = text.find_first_of("'\"");
  if (quote == std::string_view::npos || quote > 2) return std::nullopt;
  std::string letters;
  for (const char c : text.substr(0, quote)) letters += static_cast<char>(c | 0x20);
  std::sort(letters.begin(), letters.end());
  if (!letters.empty() && letters != "r" && letters != "u" && letters != "b" && letters != "br")
    return std::nullopt;
  result.raw = letters.find('r') != std::string::npos;
  result.bytes = letters.find('b') != std::string::npos;
  result.size = quote;
  return result;
}

class string_reader {
 public:
  string_reader(std::string_view text, prefix how) : text_(text), how_(how), next_(how.size) {}

  std::optional<literal_text> run() {
    const char quote = text_[next_];
    const std::string triple(3, quote);
    const bool is_triple = text_.substr(next_, 3) == triple;
    const std::string_view close = is_triple ? std::string_view(triple) : text_.substr(next_, 1);
    next_ += close.size();
    while (next_ < text_.size()) {
      if (text_.substr(next_, close.size()) == close)
        return literal_text{std::move(result_), next_ + close.size()};
      if (!character()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool character() {
    const char c = text_[next_];
    if (how_.bytes && (c & 0x80) != 0) return false;
    if (c != '\\') {
      result_ += c;
      ++next_;
      return true;
    }
    if (next_ + 1 >= text_.size()) return false;
    if (how_.raw) {
      result_ += text_.substr(next_, 2);
      next_ += 2;
      return true;
    }
    return escape();
  }

  bool escape() {
    const char c = text_[next_ + 1];
    static constexpr std::string_view letters = "\\'\"abfnrtv";
    static constexpr std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
    if (const auto known = letters.find(c); known != std::string_view::npos) {
      result_ += meanings[known];
      next_ += 2;
      return true;
    }
    if (c >= '0' && c <= '7') return octal();
    if (c == 'x') return hexadecimal(2);
    if (!how_.bytes && c == 'u') return hexadecimal(4);
    if (!how_.bytes && c == 'U') return hexadecimal(8);
    if (!how_.bytes && c == 'N') return false;
    result_ += '\\';  // Python keeps the backslash of an escape it does not know
    ++next_;
    return true;
  }

  bool octal() {
    char32_t code = 0;
    ++next_;
    for (int i = 0; i < 3 && next_ < text_.size() && text_[next_] >= '0' && text_[next_] <= '7';
         ++i)
      code = code * 8 + static_cast<char32_t>(text_[next_++] - '0');
    append(code);
    return true;
  }

  bool hexadecimal(std::size_t size) {
    const auto digits = text_.substr(next_ + 2, size);
    if (digits.size() != size) return false;
    char32_t code = 0;
    for (const char c : digits) {
      const char low = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9')
        code = code * 16 + static_cast<char32_t>(c - '0');
      else if (low >= 'a' && low <= 'f')
        code = code * 16 + static_cast<char32_t>(low - 'a' + 10);
      else
        return false;
    }
    if (code > 0x10FFFF) return false;
    next_ += 2 + size;
    append(code);
    return true;
  }

  void append(char32_t code) {
    if (how_.bytes)
      result_ += static_cast<char>(code);
    else
      append_utf8(result_, code);
  }

  std::string_view text_;
  prefix how_;
  std::size_t next_;
  std::string result_;
};

}  // namespace

std::optional<literal_text> read_literal_text(std::string_view text) {
  std::optional<literal_text> all;
  bool bytes = false;
  std::size_t next = 0;
  while (const auto how = read_prefix(text.substr(next))) {
    if (all && how->bytes != bytes) return std::nullopt;
    bytes = how->bytes;
    auto one = string_reader(text.substr(next), *how).run();
    if (!one) return std::nullopt;
    if (!all) all = literal_text{};
    all->text += one->text;
    all->size = next + one->size;
    next = all->size;
    while (next < text.size() && (text[next] == ' ' || text[next] == '\t')) ++next;
  }
  return all;
}

}  // namespace kubelane::inventory
