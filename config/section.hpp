#pragma once

#include "config/document.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::config {

/// What reading a document leaves behind beside the values.
struct reading {
  std::vector<problem> problems;
  std::vector<problem> warnings;
  positions written;  ///< each known key the file sets
};

/// Both ends are allowed.
template <typename Value>
struct range {
  Value least;
  Value most;
};

/// One mapping of the document, read key by key. A key that is absent leaves the value as it was;
/// one that is wrong does too, and is a problem. After the last key, `refuse_unknown`.
class section {
 public:
  /// `from` may be null: a section that the file leaves out. `from` and `out` outlive this.
  section(const node* from, std::string path, reading& out);

  void text(std::string_view key, std::string& into);
  void number(std::string_view key, int& into, range<int> allowed);
  void duration(std::string_view key, milliseconds& into, range<milliseconds> allowed);

  template <typename Enum>
  void choice(std::string_view key, Enum& into, std::initializer_list<Enum> all) {
    std::vector<std::string_view> names;
    for (const auto each : all) names.push_back(to_string(each));
    if (const auto chosen = chosen_of(key, names)) into = all.begin()[*chosen];
  }

  section child(std::string_view key);

  /// The value as written, if there is one that is not empty, for a key with a form of its own.
  const node* value(std::string_view key);
  /// The same, if it is text; anything else is a problem that says it is not `wanted`.
  const node* scalar(std::string_view key, std::string_view wanted);
  /// The same, if it is a list of at most `most` items.
  const node* list(std::string_view key, std::size_t most);

  /// Refuses a key that this version does not take.
  void refuse(std::string_view key, std::string why);
  /// Every key that was not asked for is a problem; the nearest of those asked for is named.
  void refuse_unknown();

  std::string path_of(std::string_view key) const { return join(path_, key); }
  bool has(std::string_view key) const;
  void complain(std::string_view key, position at, std::string message);
  void warn(std::string_view key, position at, std::string message);

 private:
  const member* find(std::string_view key) const;
  std::optional<std::size_t> chosen_of(std::string_view key,
                                       const std::vector<std::string_view>& names);

  const node* from_;
  std::string path_;
  reading& out_;
  std::vector<std::string> known_;
  std::vector<std::string> refused_;
};

/// `250ms`, `2s`, `10m`, `1h`: what the text stands for, or nothing if it is no such thing. Above a
/// year, a year.
std::optional<milliseconds> parse_duration(std::string_view text);

/// The one of `known` that differs from `word` in at most two letters (a third of its length if
/// that is less), or nothing. Swapped neighbours count as one; case and `-` for `_` do not count.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace kubelane::config
