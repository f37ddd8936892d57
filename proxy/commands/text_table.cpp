#include "proxy/commands/text_table.hpp"

#include <algorithm>

namespace kubelane::commands {
namespace {

constexpr std::string_view plain = "\x1b[0m";

const char* paint(std::string_view state) {
  if (state == "ready") return "\x1b[32m";
  if (state == "unknown" || state == "slow" || state == "shutting_down") return "\x1b[33m";
  return "\x1b[31m";
}

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// Characters, as far as UTF-8 says.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

/// The length of the colour that `text` begins with; 0 if it begins with none.
std::size_t colour_length(std::string_view text) {
  if (text.substr(0, 2) != "\x1b[") return 0;
  const auto end = text.find('m');
  return end == std::string_view::npos ? text.size() : end + 1;
}

/// The length of the character that `text` begins with.
std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && continues(text[length])) ++length;
  return length;
}

struct taken {
  std::string text;
  bool whole = true;
};

/// The first `columns` characters of a line, and the colours among them.
taken take(std::string_view line, std::size_t columns) {
  taken result;
  std::size_t used = 0;
  while (!line.empty()) {
    const auto colour = colour_length(line);
    if (colour == 0 && used == columns) {
      result.whole = false;
      break;
    }
    const auto length = colour > 0 ? colour : character_length(line);
    used += colour > 0 ? 0 : 1;
    result.text += line.substr(0, length);
    line.remove_prefix(length);
  }
  return result;
}

std::string fit_line(std::string_view line, std::size_t columns) {
  auto all = take(line, columns);
  if (all.whole) return all.text;
  const bool coloured = line.find(plain) != std::string_view::npos;
  return take(line, columns - 1).text + "\u2026" + (coloured ? std::string(plain) : "");
}

}  // namespace

std::string aligned(const std::vector<row>& rows, colour with, std::size_t state_column) {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width(cells[i]));
  }
  std::string text;
  for (std::size_t line = 0; line < rows.size(); ++line) {
    std::string out;
    for (std::size_t i = 0; i < rows[line].size(); ++i) {
      const auto& cell = rows[line][i];
      const bool painted = with == colour::on && line > 0 && i == state_column;
      out += painted ? paint(cell) + cell + std::string(plain) : cell;
      if (i + 1 < rows[line].size()) out += std::string(widths[i] - width(cell) + 2, ' ');
    }
    text += out + '\n';
  }
  return text;
}

std::string printable(std::string text) {
  for (auto& byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (code < 0x20 || code == 0x7F) byte = '?';
  }
  // U+0080 to U+009F are control characters too.
  for (std::size_t i = 0; i + 1 < text.size(); ++i)
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      text.replace(i, 2, "?");
  return text;
}

std::string short_time(std::string time) {
  if (time.size() < 19 || time[10] != 'T') return time;
  time[10] = ' ';
  return time.substr(0, 19);
}

std::string fit(std::string_view text, std::size_t columns, std::size_t lines) {
  std::string result;
  if (columns == 0) return result;
  for (std::size_t count = 0; count < lines && !text.empty(); ++count) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool last_and_more = count + 1 == lines && !text.empty();
    result += last_and_more ? std::string("\u2026") : fit_line(line, columns);
    result += '\n';
  }
  return result;
}

}  // namespace kubelane::commands
