#include "inventory/json.hpp"

#include "inventory/text.hpp"

#include <cmath>
#include <cstdlib>

namespace kubelane::inventory {
namespace {

constexpr int deepest = 200;

class json_parser {
 public:
  json_parser(std::string_view text, int file) : text_(text), file_(file) {}

  json_document run() {
    json_document result;
    result.root = element();
    if (result.root) {
      skip();
      if (next_ < text_.size()) result.root = fail("text after the end of the JSON document");
    }
    if (!result.root) result.error = {message_, line_};
    return result;
  }

 private:
  std::nullopt_t fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
    return std::nullopt;
  }

  void skip() {
    while (next_ < text_.size()) {
      const char c = text_[next_];
      if (c == '\n') ++line_;
      if (c != ' ' && c != '\t' && c != '\n' && c != '\r') break;
      ++next_;
    }
  }

  bool accept(char c) {
    skip();
    if (next_ >= text_.size() || text_[next_] != c) return false;
    ++next_;
    return true;
  }

  bool accept(std::string_view word) {
    if (text_.substr(next_, word.size()) != word) return false;
    next_ += word.size();
    return true;
  }

  place here() const { return {file_, line_}; }

  std::optional<value> element() {
    skip();
    if (next_ >= text_.size()) return fail("the document ends too early");
    const place at = here();
    const char c = text_[next_];
    if (c == '{') return object(at);
    if (c == '[') return array(at);
    if (c == '"') {
      auto text = string();
      if (!text) return std::nullopt;
      return make_text(std::move(*text), at);
    }
    if (accept("null")) return make_null(at);
    if (accept("true")) return make_boolean(true, at);
    if (accept("false")) return make_boolean(false, at);
    if (accept("NaN")) return make_real(std::nan(""), at);
    if (accept("Infinity")) return make_real(HUGE_VAL, at);
    if (accept("-Infinity")) return make_real(-HUGE_VAL, at);
    return number(at);
  }

  std::optional<value> number(place at) {
    const auto start = next_;
    const auto digits = [&] {
      const auto from = next_;
      while (next_ < text_.size() && text_[next_] >= '0' && text_[next_] <= '9') ++next_;
      return next_ - from;
    };
    const auto is = [&](char c) { return next_ < text_.size() && text_[next_] == c; };
    if (is('-')) ++next_;
    const auto first = next_;
    const auto whole = digits();
    if (whole == 0 || (whole > 1 && text_[first] == '0')) return fail("no JSON value");
    bool real = false;
    if (is('.')) {
      real = true;
      ++next_;
      if (digits() == 0) return fail("digits are missing after the point");
    }
    if (is('e') || is('E')) {
      real = true;
      ++next_;
      if (is('+') || is('-')) ++next_;
      if (digits() == 0) return fail("digits are missing in the exponent");
    }
    std::string text(text_.substr(start, next_ - start));
    if (real) return make_real(std::strtod(text.c_str(), nullptr), at);
    if (text == "-0") text = "0";
    return make_integer(std::move(text), at);
  }

  std::optional<value> array(place at) {
    if (++depth_ > deepest) return fail("nested too deeply");
    ++next_;
    value result;
    result.is = value::kind::list;
    result.at = at;
    if (!accept(']')) {
      do {
        auto item = element();
        if (!item) return std::nullopt;
        result.items.push_back(std::move(*item));
      } while (accept(','));
      if (!accept(']')) return fail("`,` or `]` is missing");
    }
    --depth_;
    return result;
  }

  std::optional<value> object(place at) {
    if (++depth_ > deepest) return fail("nested too deeply");
    ++next_;
    value result;
    result.is = value::kind::mapping;
    result.at = at;
    if (!accept('}')) {
      do {
        if (!pair(result)) return std::nullopt;
      } while (accept(','));
      if (!accept('}')) return fail("`,` or `}` is missing");
    }
    --depth_;
    return ansible(std::move(result));
  }

  bool pair(value& into) {
    skip();
    const place at = here();
    if (next_ >= text_.size() || text_[next_] != '"') {
      fail("a key in double quotes is missing");
      return false;
    }
    auto key = string();
    if (!key) return false;
    if (!accept(':')) {
      fail("`:` is missing after the key");
      return false;
    }
    auto content = element();
    if (!content) return false;
    into.members.push_back({std::move(*key), at, std::move(*content)});
    return true;
  }

  static value ansible(value object) {
    unite_keys(object.members);
    const auto* vault = find(object, "__ansible_vault");
    const auto* unsafe = find(object, "__ansible_unsafe");
    const auto* inner = vault != nullptr ? vault : unsafe;
    if (inner == nullptr || inner->is != value::kind::text) return object;
    value result = *inner;
    if (vault != nullptr)
      result.is = value::kind::vault;
    else
      result.is_unsafe = true;
    return result;
  }

  std::optional<std::string> string() {
    std::string result;
    for (++next_; next_ < text_.size();) {
      const char c = text_[next_++];
      if (c == '"') return result;
      if (static_cast<unsigned char>(c) < 0x20) return fail("a control character in a text");
      if (c != '\\') {
        result += c;
      } else if (!escape(result)) {
        return fail("an escape that JSON does not have");
      }
    }
    return fail("the closing `\"` is missing");
  }

  bool escape(std::string& to) {
    if (next_ >= text_.size()) return false;
    static constexpr std::string_view letters = "\"\\/bfnrt";
    static constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    const char c = text_[next_++];
    if (const auto known = letters.find(c); known != std::string_view::npos) {
      to += meanings[known];
      return true;
    }
    if (c != 'u') return false;
    auto code = hexadecimal();
    if (!code) return false;
    if (*code >= 0xD800 && *code < 0xDC00 && text_.substr(next_, 2) == "\\u") {
      const auto back = next_;
      next_ += 2;
      const auto low = hexadecimal();
      if (low && *low >= 0xDC00 && *low < 0xE000)
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      else
        next_ = back;
    }
    append_utf8(to, *code);
    return true;
  }

  std::optional<char32_t> hexadecimal() {
    const auto digits = text_.substr(next_, 4);
    if (digits.size() != 4) return std::nullopt;
    char32_t code = 0;
    for (const char c : digits) {
      const char low = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9')
        code = code * 16 + static_cast<char32_t>(c - '0');
      else if (low >= 'a' && low <= 'f')
        code = code * 16 + static_cast<char32_t>(low - 'a' + 10);
      else
        return std::nullopt;
    }
    next_ += 4;
    return code;
  }

  std::string_view text_;
  int file_;
  std::size_t next_ = 0;
  int line_ = 1;
  int depth_ = 0;
  std::string message_;
};

}  // namespace

json_document read_json(std::string_view text, int file) {
  return json_parser(text, file).run();
}

std::string json_text(std::string_view text) {
  static constexpr std::string_view hex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20) {
      result += "\\u00";
      result += hex[byte >> 4];
      result += hex[byte & 15];
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string write_json(const value& of) {
  std::string result;
  const char* separator = "";
  switch (of.is) {
    case value::kind::list:
      for (const auto& item : of.items) {
        result += separator + write_json(item);
        separator = ", ";
      }
      return "[" + result + "]";
    case value::kind::mapping:
      for (const auto& entry : of.members) {
        result += separator + json_text(entry.key) + ": " + write_json(entry.content);
        separator = ", ";
      }
      return "{" + result + "}";
    case value::kind::text:
      return of.is_unsafe ? "{\"__ansible_unsafe\": " + json_text(of.text) + "}"
                          : json_text(of.text);
    case value::kind::vault:
      return "{\"__ansible_vault\": " + json_text(of.text) + "}";
    case value::kind::null:
    case value::kind::boolean:
    case value::kind::integer:
    case value::kind::real:
      return scalar_text(of);
  }
  return result;
}

}  // namespace kubelane::inventory
