#pragma once

#include "config/config.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::config {

struct member;

/// A YAML value as written, with its place. Hides the YAML library.
struct node {
  enum class kind { empty, scalar, list, mapping };
  kind is = kind::empty;
  position at;
  std::string text;             ///< of a scalar
  bool quoted = false;          ///< a scalar in quotes, so never a number
  std::vector<node> items;      ///< of a list
  std::vector<member> members;  ///< of a mapping, in the order written; keys are unique
};

struct member {
  std::string key;
  position at;  ///< of the key
  node value;
};

struct document {
  std::optional<node> root;       ///< nothing if the text cannot be taken apart
  std::vector<problem> problems;  ///< each repeated key, alias, tag; or why there is no root
};

/// Largest text that is read. A configuration with a thousand upstreams is a tenth of that.
constexpr std::size_t largest_document = 1024 * 1024;

/// Takes YAML text apart. Safe on hostile text: limited in size and depth, no aliases, no tags,
/// UTF-8 without control characters, exactly one document. Never throws on what it is given.
document parse(std::string_view yaml);

/// What a value is, for messages: `a list`, `a mapping`, `text`, `empty`.
std::string_view kind_of(const node& value);

/// `parent.key`, or `key` at the top. A key that is no plain word is quoted.
std::string join(std::string_view parent, std::string_view key);

}  // namespace kubelane::config
