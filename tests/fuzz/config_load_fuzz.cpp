#include "config/load.hpp"

#include <cstdint>
#include <cstdlib>

namespace {

using namespace kubelane::config;

/// Text is either used or explained, and every explanation has a place and fits on one line.
void require_explained(const std::vector<problem>& list) {
  for (const auto& each : list) {
    const auto line = describe("f", each, severity::error);
    const bool is_placed = each.at.line >= 1 && each.at.column >= 1;
    if (!is_placed || each.path.empty() || line.find('\n') != std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto result = load({reinterpret_cast<const char*>(data), size});
  if (result) {
    if (result->settings.upstreams.empty() || result->settings.listen.empty()) std::abort();
    require_explained(result->warnings);
  } else {
    if (result.error().list.empty()) std::abort();
    require_explained(result.error().list);
    require_explained(result.error().warnings);
  }
  return 0;
}
