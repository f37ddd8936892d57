#include "proxy/commands/load.hpp"

#include "config/load.hpp"
#include "net/host_addresses.hpp"

#include <iostream>

namespace kubelane::commands {
namespace {

void print(const std::string& path, const std::vector<config::problem>& list,
           config::severity how) {
  for (const auto& one : list) std::cerr << config::describe(path, one, how) << '\n';
}

}  // namespace

std::optional<config::loaded> load_and_explain(const std::string& path) {
  auto loaded = config::load_file(path, net::host_addresses());
  if (!loaded) {
    print(path, loaded.error().list, config::severity::error);
    print(path, loaded.error().warnings, config::severity::warning);
    return std::nullopt;
  }
  print(path, loaded->warnings, config::severity::warning);
  return std::move(*loaded);
}

}  // namespace kubelane::commands
