#include "net/host_addresses.hpp"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>

namespace kubelane::net {
namespace {

namespace ip = boost::asio::ip;

void append(const sockaddr* address, std::vector<ip::address>& to) {
  if (address == nullptr) return;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    to.emplace_back(ip::address_v4(ntohl(v4.sin_addr.s_addr)));
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    to.emplace_back(ip::address_v6(bytes));
  }
}

}  // namespace

std::vector<ip::address> host_addresses() {
  std::vector<ip::address> result;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return result;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next)
    append(one->ifa_addr, result);
  ::freeifaddrs(list);
  return result;
}

}  // namespace kubelane::net
