#include "health/readyz.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto failed = kubelane::health::parse_readyz({reinterpret_cast<const char*>(data), size});
  if (failed.names.size() > 8) std::abort();
  for (const auto& name : failed.names) {
    if (name.empty() || name.size() > 64) std::abort();
    for (const char c : name)
      if (static_cast<unsigned char>(c) < 0x20) std::abort();  // it goes into a log line
  }
  return 0;
}
