#include "inventory_case.hpp"

#include <sstream>

namespace kubelane::test {

namespace fs = std::filesystem;

inventory_files::inventory_files(const std::map<std::string, std::string>& files) {
  for (const auto& [file, text] : files) {
    fs::create_directories(fs::path(path(file)).parent_path());
    folder_.write(file, text);
  }
}

std::string inventory_files::path(std::string_view name) const {
  return folder_ / name;
}

inventory::reading inventory_files::read(const std::vector<std::string>& sources) const {
  std::vector<std::string> paths;
  for (const auto& source : sources)
    paths.push_back(source.find(',') == std::string::npos ? path(source) : source);
  std::istringstream nothing;
  return inventory::read(paths, nothing);
}

inventory::reading read_inventory(std::string_view name, std::string_view text) {
  const std::map<std::string, std::string> files{{std::string(name), std::string(text)}};
  return inventory_files(files).read({std::string(name)});
}

std::vector<std::string> messages(const inventory::reading& from, std::string_view rule) {
  std::vector<std::string> result;
  for (const auto& one : from.findings) {
    if (one.rule != rule) continue;
    const auto at = from.inventory.describe(one.at);
    result.push_back(at.substr(at.rfind('/') + 1) + ": " + one.message);
  }
  return result;
}

}  // namespace kubelane::test
