#pragma once

#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// Why a text cannot be what it should be.
struct text_error {
  std::string message;
};

/// Lines as Python's str.splitlines() counts them: also split at form feeds and Unicode's line
/// ends.
std::vector<std::string_view> split_lines(std::string_view text);

/// Without white space (Unicode's, as Python's str.strip() has it) at both ends.
std::string_view strip(std::string_view text);

/// The first code point of a non-empty UTF-8 text, and how many bytes it takes. A broken sequence
/// is one byte with its own value.
struct code_point {
  char32_t is = 0;
  std::size_t size = 0;
};
code_point first_code_point(std::string_view text);

bool is_space(char32_t c);

/// Letters, digits, underscore, and everything beyond ASCII that is no white space.
bool is_word(char32_t c);

/// Words as a POSIX shell takes them apart: quotes, backslashes, and `#` starts a comment anywhere
/// outside quotes. Source: Python's shlex.split(line, comments=True).
boost::system::result<std::vector<std::string>, text_error> shell_words(std::string_view line);

/// Appends a code point as UTF-8.
void append_utf8(std::string& to, char32_t c);

/// The candidate nearest to `word`, if near enough to be what was meant; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace kubelane::inventory
