#pragma once

#include "inventory/finding.hpp"
#include "inventory/model.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace kubelane::inventory {

/// An inventory, and what is wrong with its files.
struct reading {
  model inventory;
  std::vector<finding> findings;
  /// Files in which nothing that could be read was found; each has a finding that says why.
  std::vector<std::string> refused;
};

/// Reads sources in the order given, each as Ansible would: a file (INI, YAML or JSON), a directory
/// of files, a list of hosts with a comma in it. Then `group_vars` and `host_vars` beside each.
/// `-` is the JSON of `ansible-inventory --list` on `standard_input`; so is a file that holds it.
/// Nothing is executed and nothing decrypted: such a source is a finding that says what to do.
reading read(const std::vector<std::string>& sources, std::istream& standard_input);

/// A whole file; nothing if it cannot be read, is no file, or is larger than 64 MiB.
std::optional<std::string> read_file(const std::string& path);

}  // namespace kubelane::inventory
