#include "proxy/client_hello.hpp"

#include <cstdint>
#include <cstdlib>

using kubelane::proxy::classify_flight;
using kubelane::proxy::flight;

// A flight is sent twice only if it is one whole ClientHello, so: every proper prefix of one is
// partial, and one byte more makes it something else.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto whole = classify_flight({data, size});
  if ((whole == flight::empty) != (size == 0)) std::abort();
  if (size == 0) return 0;
  const auto shorter = classify_flight({data, size - 1});
  if (whole == flight::hello && size > 1 && shorter != flight::partial_hello) std::abort();
  if (whole == flight::partial_hello && size > 1 && shorter != flight::partial_hello) std::abort();
  if (shorter == flight::hello && whole != flight::other) std::abort();
  return 0;
}
