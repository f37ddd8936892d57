#pragma once

#include "inventory/sources.hpp"
#include "tests/support/temporary_folder.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::test {

/// Files of one inventory in a directory of their own, gone with this object.
class inventory_files {
 public:
  explicit inventory_files(const std::map<std::string, std::string>& files);

  std::string path(std::string_view name) const;

  /// Reads sources named relative to the directory; `-` and host lists are taken as they are.
  inventory::reading read(const std::vector<std::string>& sources) const;

 private:
  temporary_folder folder_;
};

/// Reads an inventory of one file.
inventory::reading read_inventory(std::string_view name, std::string_view text);

/// The messages of all findings of one rule, each after its `FILE:LINE: `, FILE without its folder.
std::vector<std::string> messages(const inventory::reading& from, std::string_view rule);

}  // namespace kubelane::test
