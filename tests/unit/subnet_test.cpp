#include "net/subnet.hpp"

#include <gtest/gtest.h>

namespace kubelane::net {
namespace {

boost::asio::ip::address at(const char* text) {
  return boost::asio::ip::make_address(text);
}

TEST(Subnet, ContainsWhatSharesItsFirstBits) {
  const subnet it(at("10.1.128.0"), 17);
  for (const char* inside : {"10.1.128.0", "10.1.200.7", "10.1.255.255"})
    EXPECT_TRUE(it.contains(at(inside))) << inside;
  for (const char* outside : {"10.1.127.255", "10.2.128.0", "11.1.128.0", "fd00::1"})
    EXPECT_FALSE(it.contains(at(outside))) << outside;
}

TEST(Subnet, OfIpv6ContainsIpv6Alone) {
  const subnet it(at("fd00:1::"), 32);
  EXPECT_TRUE(it.contains(at("fd00:1:ffff::1")));
  EXPECT_FALSE(it.contains(at("fd00:2::")));
  EXPECT_FALSE(it.contains(at("10.0.0.1")));
}

TEST(Subnet, TakesAMappedAddressForTheIpv4AddressItStandsFor) {
  EXPECT_TRUE(subnet(at("10.0.0.0"), 8).contains(at("::ffff:10.1.2.3")));
  EXPECT_FALSE(subnet(at("::"), 0).contains(at("::ffff:10.1.2.3")));
}

TEST(Subnet, WithoutAPrefixIsAWholeFamilyAndWithAFullOneAnAddress) {
  EXPECT_TRUE(subnet(at("0.0.0.0"), 0).contains(at("255.255.255.255")));
  EXPECT_TRUE(subnet(at("::"), 0).contains(at("ffff::")));
  EXPECT_TRUE(subnet(at("10.0.0.1"), 32).contains(at("10.0.0.1")));
  EXPECT_FALSE(subnet(at("10.0.0.1"), 32).contains(at("10.0.0.0")));
}

TEST(Subnet, IsShownByItsFirstAddress) {
  EXPECT_EQ(to_string(subnet(at("10.1.2.3"), 8)), "10.0.0.0/8");
  EXPECT_EQ(to_string(subnet(at("fd00::1"), 128)), "fd00::1/128");
}

}  // namespace
}  // namespace kubelane::net
