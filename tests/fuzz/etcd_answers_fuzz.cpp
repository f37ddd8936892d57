#include "etcd/answers.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  using namespace kubelane::etcd;
  if (const auto status = parse_status(text); status && status->id == nobody) std::abort();
  if (const auto members = parse_members(text); members && members->empty()) std::abort();
  (void)parse_alarms(text);
  for (const char letter : explain_refusal(503, text.substr(0, size / 2), text))
    if (letter < ' ' || letter > '~') std::abort();  // it goes to a terminal
  return 0;
}
