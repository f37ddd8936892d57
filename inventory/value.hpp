#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// Where something was written: a file, by its index in `model::files`, and a line from 1.
/// Line 0: the file as a whole. File -1: nowhere, a default.
struct place {
  int file = -1;
  int line = 0;
  friend bool operator==(const place&, const place&) = default;
};

struct member;

/// A variable's value as Ansible holds it before any template is rendered, and where it stands.
struct value {
  enum class kind { null, boolean, integer, real, text, list, mapping, vault };
  kind is = kind::null;
  bool truth = false;           ///< of a boolean
  double number = 0;            ///< of a real
  std::string text;             ///< of a text; decimal digits of an integer; ciphertext of a vault
  std::vector<value> items;     ///< of a list
  std::vector<member> members;  ///< of a mapping, in the order written; keys are unique
  bool is_unsafe = false;       ///< a text tagged `!unsafe`, which no template engine touches
  place at;
};

struct member {
  std::string key;
  place at;  ///< of the key
  value content;
  bool key_is_text = true;  ///< not a number, boolean or null, of which `key` is the spelling
};

/// Variable name -> value.
using variables = std::map<std::string, value, std::less<>>;

value make_null(place at);
value make_boolean(bool truth, place at);
value make_integer(std::string digits, place at);
value make_real(double number, place at);
value make_text(std::string text, place at);

/// The member of a mapping with this key; null if there is none or `of` is no mapping.
const value* find(const value& of, std::string_view key);

/// Unites equal keys as Python's dict does: the first one's place in the order, the last one's
/// value. Returns the first and the last place of each key that was there more than once.
struct repeated_key {
  std::string key;
  place first;
  place last;
};
std::vector<repeated_key> unite_keys(std::vector<member>& members);

/// As Python and Jinja see it: empty, zero, null and false are false, all else is true. So the text
/// `false` is true.
bool is_true(const value& of);

/// A scalar as text (`true`, `null`, `6443`, `0.5`); what JSON writes for a mapping's key.
std::string scalar_text(const value& of);

/// A real as Python writes it: the shortest digits that read back the same, with a point or an
/// exponent; `Infinity`, `-Infinity`, `NaN`.
std::string real_text(double number);

/// Whether a template engine would change it: some text in it holds `{{`, `{%` or `{#`.
bool has_template(const value& of);

/// Digits in base 2, 8 or 16 as a decimal number of any length.
std::string to_decimal(std::string_view digits, int base);

}  // namespace kubelane::inventory
