#include "inventory/literal.hpp"

#include "inventory/literal_text.hpp"
#include "inventory/text.hpp"

#include <cstdlib>

namespace kubelane::inventory {
namespace {

// Python refuses more nested brackets.
constexpr int deepest = 200;
// Python refuses to convert longer integers.
constexpr std::size_t most_digits = 4300;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return is_word(static_cast<unsigned char>(c)) || (c & 0x80) != 0;
}

class literal_parser {
 public:
  literal_parser(std::string_view text, place at) : text_(text), at_(at) {}

  std::optional<value> run() {
    auto result = list_until_end();
    skip();
    if (!result || next_ != text_.size()) return std::nullopt;
    return result;
  }

 private:
  char peek() const { return next_ < text_.size() ? text_[next_] : '\0'; }

  void skip() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\f') ++next_;
    if (peek() == '#') next_ = text_.size();
  }

  bool accept(char c) {
    skip();
    if (peek() != c || next_ == text_.size()) return false;
    ++next_;
    return true;
  }

  bool at_end() {
    skip();
    return next_ == text_.size();
  }

  // `1` is a number, `1,` and `1, 2` are tuples.
  std::optional<value> list_until_end() {
    auto first = signed_number();
    if (!first) return std::nullopt;
    if (!accept(',')) return first;
    value tuple;
    tuple.is = value::kind::list;
    tuple.at = at_;
    tuple.items.push_back(std::move(*first));
    while (!at_end()) {
      auto item = signed_number();
      if (!item) return std::nullopt;
      tuple.items.push_back(std::move(*item));
      if (!accept(',')) break;
    }
    return tuple;
  }

  std::optional<value> signed_number() {
    skip();
    const char sign = peek();
    if (sign != '-' && sign != '+') return primary();
    ++next_;
    auto number = primary();
    if (!number) return std::nullopt;
    if (number->is == value::kind::real) {
      if (sign == '-') number->number = -number->number;
    } else if (number->is == value::kind::integer && number->text.front() != '-') {
      if (sign == '-' && number->text != "0") number->text.insert(0, "-");
    } else {
      return std::nullopt;
    }
    return number;
  }

  std::optional<value> primary() {
    skip();
    const char c = peek();
    if (next_ == text_.size()) return std::nullopt;
    if (is_digit(c) || c == '.') return number();
    if (c == '[') return bracketed(']');
    if (c == '(') return bracketed(')');
    if (c == '{') return braced();
    return word();
  }

  std::optional<value> bracketed(char close) {
    ++next_;
    if (++depth_ > deepest) return std::nullopt;
    value result;
    result.is = value::kind::list;
    result.at = at_;
    bool comma = false;
    while (!accept(close)) {
      if (!result.items.empty() && !comma) return std::nullopt;
      auto item = signed_number();
      if (!item) return std::nullopt;
      result.items.push_back(std::move(*item));
      comma = accept(',');
    }
    --depth_;
    if (close == ')' && result.items.size() == 1 && !comma) {
      value only = std::move(result.items.front());
      return only;
    }
    return result;
  }

  std::optional<value> braced() {
    ++next_;
    if (++depth_ > deepest) return std::nullopt;
    value result;
    result.is = value::kind::mapping;
    result.at = at_;
    bool comma = true;
    while (!accept('}')) {
      if (!comma) return std::nullopt;
      auto key = signed_number();
      if (!key) return std::nullopt;
      const bool first = result.items.empty() && result.members.empty();
      if (accept(':')) {
        if (result.is != value::kind::mapping || !entry(result, *key)) return std::nullopt;
      } else {
        if (!first && result.is == value::kind::mapping) return std::nullopt;
        result.is = value::kind::list;
        result.items.push_back(std::move(*key));
      }
      comma = accept(',');
    }
    --depth_;
    unite_keys(result.members);
    return result;
  }

  bool entry(value& into, const value& key) {
    if (key.is == value::kind::list || key.is == value::kind::mapping) return false;
    auto content = signed_number();
    if (!content) return false;
    into.members.push_back({scalar_text(key), at_, std::move(*content)});
    return true;
  }

  std::optional<value> word() {
    const auto strings = read_literal_text(text_.substr(next_));
    if (strings) {
      next_ += strings->size;
      return make_text(strings->text, at_);
    }
    const auto start = next_;
    while (next_ < text_.size() && is_name(text_[next_])) ++next_;
    const auto name = text_.substr(start, next_ - start);
    if (name == "True" || name == "False") return make_boolean(name == "True", at_);
    if (name == "None") return make_null(at_);
    return std::nullopt;
  }

  std::optional<value> number() {
    const char kind = next_ + 1 < text_.size() ? static_cast<char>(text_[next_ + 1] | 0x20) : '\0';
    std::optional<value> result;
    if (peek() == '0' && (kind == 'x' || kind == 'o' || kind == 'b'))
      result = based(kind == 'x' ? 16 : kind == 'o' ? 8 : 2);
    else
      result = decimal();
    if (is_name(peek()) || peek() == '.') return std::nullopt;
    return result;
  }

  // Digits with single underscores between them; empty if there are none, or they are misplaced.
  std::string digits(int base) {
    std::string result;
    const auto fits = [&](char c) {
      if (base == 16) return std::isxdigit(static_cast<unsigned char>(c)) != 0;
      return c >= '0' && c < '0' + base;
    };
    while (fits(peek()) || peek() == '_') {
      const bool underscore = peek() == '_';
      if (underscore && (next_ + 1 >= text_.size() || !fits(text_[next_ + 1]))) return {};
      if (!underscore) result += peek();
      ++next_;
    }
    return result;
  }

  std::optional<value> based(int base) {
    next_ += 2;
    const auto found = digits(base);
    if (found.empty()) return std::nullopt;
    return make_integer(to_decimal(found, base), at_);
  }

  std::optional<value> decimal() {
    std::string whole;
    if (peek() == '_') return std::nullopt;
    if (is_digit(peek()) && (whole = digits(10)).empty()) return std::nullopt;
    std::string text = whole;
    bool real = false;
    if (peek() == '.') {
      real = true;
      ++next_;
      text += '.';
      if (peek() == '_') return std::nullopt;
      std::string fraction;
      if (is_digit(peek()) && (fraction = digits(10)).empty()) return std::nullopt;
      if (whole.empty() && fraction.empty()) return std::nullopt;
      text += fraction;
    }
    if (peek() == 'e' || peek() == 'E') {
      real = true;
      ++next_;
      text += 'e';
      if (peek() == '+' || peek() == '-') text += text_[next_++];
      if (!is_digit(peek())) return std::nullopt;
      const auto exponent = digits(10);
      if (exponent.empty()) return std::nullopt;
      text += exponent;
    }
    if (real) return make_real(std::strtod(text.c_str(), nullptr), at_);
    return integer(whole);
  }

  std::optional<value> integer(const std::string& whole) const {
    if (whole.empty() || whole.size() > most_digits) return std::nullopt;
    if (whole.find_first_not_of('0') == std::string::npos) return make_integer("0", at_);
    if (whole.front() == '0') return std::nullopt;  // `010`: no number in Python 3
    return make_integer(whole, at_);
  }

  std::string_view text_;
  place at_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

std::optional<value> parse_literal(std::string_view text, place at) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  return literal_parser(text, at).run();
}

}  // namespace kubelane::inventory
