#include "net/subnet.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace kubelane::net {
namespace {

namespace ip = boost::asio::ip;

/// Keeps the first `prefix` bits.
template <typename Bytes>
Bytes cut(Bytes bytes, unsigned prefix) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const unsigned kept = std::clamp<unsigned>(prefix, 8 * i, 8 * i + 8) - 8 * i;
    bytes[i] = static_cast<unsigned char>(bytes[i] & (0xff00U >> kept));
  }
  return bytes;
}

ip::address cut(const ip::address& address, unsigned prefix) {
  if (address.is_v4()) return ip::address_v4(cut(address.to_v4().to_bytes(), prefix));
  return ip::address_v6(cut(address.to_v6().to_bytes(), prefix));
}

ip::address unmapped(const ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return ip::make_address_v4(ip::v4_mapped, address.to_v6());
}

}  // namespace

subnet::subnet(const ip::address& base, unsigned prefix)
    : base_(cut(base, prefix)), prefix_(prefix) {
  assert(prefix <= (base.is_v4() ? 32U : 128U));
}

bool subnet::contains(const ip::address& address) const noexcept {
  const auto plain = unmapped(address);
  return plain.is_v4() == base_.is_v4() && cut(plain, prefix_) == base_;
}

std::string to_string(const subnet& value) {
  return value.base().to_string() + "/" + std::to_string(value.prefix());
}

}  // namespace kubelane::net
