#include "proxy/membership.hpp"

#include "config/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

using boost::asio::ip::make_address;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

config::upstream upstream(const std::string& name, const std::string& address,
                          const std::string& zone = "") {
  return {.name = name, .address = *net::parse_host_port(address, 6443), .zone = zone, .at = {}};
}

lookup answer(const std::string& host, const std::vector<std::string>& addresses) {
  std::vector<boost::asio::ip::address> list;
  for (const auto& each : addresses) list.push_back(make_address(each));
  return {host, list};
}

lookup failure(const std::string& host) {
  return {host, std::nullopt};
}

/// `name=address zone`, in order.
std::vector<std::string> shown(const membership_result& of) {
  std::vector<std::string> list;
  for (const auto& each : of.wanted)
    list.push_back(each.name + "=" + (each.address ? net::to_string(*each.address) : "none") +
                   (each.zone.empty() ? "" : " " + each.zone));
  return list;
}

/// Asks again and again, as the server does.
class members {
 public:
  explicit members(std::vector<config::upstream> configured) : configured_(std::move(configured)) {}
  membership_result ask(const std::vector<lookup>& lookups) {
    auto result = resolve_members(configured_, lookups, {}, known_);
    known_ = result.known;
    return result;
  }

 private:
  std::vector<config::upstream> configured_;
  std::vector<known_address> known_;
};

TEST(Membership, AnAddressIsAnUpstreamOfItsName) {
  members all({upstream("cp1", "10.0.0.11", "a"), upstream("cp2", "[fd00::12]:7443")});
  const auto result = all.ask({});
  EXPECT_THAT(shown(result), ElementsAre("cp1=10.0.0.11:6443 a", "cp2=[fd00::12]:7443"));
  EXPECT_THAT(result.warnings, IsEmpty());
  EXPECT_EQ(result.wanted.front().member, health::membership::configured);
}

TEST(Membership, EachAddressOfANameIsAnUpstreamOfItsOwn) {
  members all({upstream("api", "api.example:7443", "b")});
  const auto result = all.ask({answer("api.example", {"10.0.0.12", "10.0.0.11"})});
  EXPECT_THAT(shown(result),
              ElementsAre("api/10.0.0.11=10.0.0.11:7443 b", "api/10.0.0.12=10.0.0.12:7443 b"));
}

TEST(Membership, ANameWithOneAddressIsNamedAlike) {
  members all({upstream("api", "api.example")});
  EXPECT_THAT(shown(all.ask({answer("api.example", {"10.0.0.11"})})),
              ElementsAre("api/10.0.0.11=10.0.0.11:6443"));
}

TEST(Membership, ANameWithoutAddressIsAPlaceholder) {
  members all({upstream("api", "api.example"), upstream("cp2", "10.0.0.12")});
  EXPECT_THAT(shown(all.ask({failure("api.example")})),
              ElementsAre("api=none", "cp2=10.0.0.12:6443"));
}

TEST(Membership, AnAddressIsGoneOnlyAfterThreeAnswersWithoutIt) {
  members all({upstream("api", "api.example")});
  all.ask({answer("api.example", {"10.0.0.11", "10.0.0.12"})});
  const auto without = answer("api.example", {"10.0.0.12"});
  EXPECT_EQ(all.ask({without}).wanted.size(), 2u);
  EXPECT_EQ(all.ask({without}).wanted.size(), 2u);
  EXPECT_THAT(shown(all.ask({without})), ElementsAre("api/10.0.0.12=10.0.0.12:6443"));
}

TEST(Membership, AnAnswerWithTheAddressStartsTheCountAgain) {
  members all({upstream("api", "api.example")});
  const auto with = answer("api.example", {"10.0.0.11", "10.0.0.12"});
  const auto without = answer("api.example", {"10.0.0.12"});
  all.ask({with});
  for (int i = 0; i < 3; ++i) {
    all.ask({without});
    all.ask({without});
    EXPECT_EQ(all.ask({with}).wanted.size(), 2u);
  }
}

TEST(Membership, FailuresAndEmptyAnswersChangeNothing) {
  members all({upstream("api", "api.example")});
  all.ask({answer("api.example", {"10.0.0.11"})});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(all.ask({failure("api.example")}).wanted.size(), 1u);
    EXPECT_THAT(shown(all.ask({answer("api.example", {})})),
                ElementsAre("api/10.0.0.11=10.0.0.11:6443"));
  }
}

TEST(Membership, ARoundWithoutALookupKeepsWhatIsKnown) {
  members all({upstream("api", "api.example")});
  all.ask({answer("api.example", {"10.0.0.11"})});
  for (int i = 0; i < 10; ++i) EXPECT_EQ(all.ask({}).wanted.size(), 1u);
}

TEST(Membership, AChangeOfAddressOverlapsUntilTheOldOneIsGone) {
  members all({upstream("api", "api.example")});
  all.ask({answer("api.example", {"10.0.0.11"})});
  EXPECT_EQ(all.ask({answer("api.example", {"10.0.0.99"})}).wanted.size(), 2u);
}

TEST(Membership, TheSameAddressTwiceIsOneUpstreamWithAWarning) {
  members all({upstream("cp1", "10.0.0.11"), upstream("twin", "10.0.0.11")});
  const auto result = all.ask({});
  EXPECT_THAT(shown(result), ElementsAre("cp1=10.0.0.11:6443"));
  EXPECT_THAT(result.warnings, ElementsAre(testing::AllOf(HasSubstr("twin"), HasSubstr("cp1"))));
}

TEST(Membership, TheSameAddressWithAnotherPortIsAnother) {
  members all({upstream("cp1", "10.0.0.11:6443"), upstream("cp2", "10.0.0.11:7443")});
  EXPECT_EQ(all.ask({}).wanted.size(), 2u);
}

TEST(Membership, AnIpv4MappedAddressIsTheIpv4Address) {
  members all({upstream("cp1", "10.0.0.11"), upstream("twin", "[::ffff:10.0.0.11]")});
  const auto result = all.ask({});
  EXPECT_THAT(shown(result), ElementsAre("cp1=10.0.0.11:6443"));
  EXPECT_EQ(result.warnings.size(), 1u);
}

TEST(Membership, ANameForAConfiguredAddressIsTheSameUpstream) {
  members all({upstream("cp1", "10.0.0.11"), upstream("api", "api.example")});
  const auto result = all.ask({answer("api.example", {"::ffff:10.0.0.11", "10.0.0.12"})});
  EXPECT_THAT(shown(result), ElementsAre("cp1=10.0.0.11:6443", "api/10.0.0.12=10.0.0.12:6443"));
  EXPECT_EQ(result.warnings.size(), 1u);
}

TEST(Membership, TwoUpstreamsOfOneNameShareItsAddresses) {
  members all({upstream("a", "api.example:6443"), upstream("b", "api.example:7443")});
  const auto result = all.ask({answer("api.example", {"10.0.0.11"})});
  EXPECT_THAT(shown(result),
              ElementsAre("a/10.0.0.11=10.0.0.11:6443", "b/10.0.0.11=10.0.0.11:7443"));
}

TEST(Membership, AnOwnListenerIsRefusedWithAWarning) {
  const own_listeners own{{*net::parse_endpoint("127.0.0.1:6443", 0)}, {}};
  const auto result =
      resolve_members({upstream("me", "127.0.0.1"), upstream("cp2", "10.0.0.12")}, {}, own, {});
  EXPECT_THAT(shown(result), ElementsAre("cp2=10.0.0.12:6443"));
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("own listener")));
}

TEST(Membership, ANameThatResolvesToAnOwnListenerIsRefusedToo) {
  const own_listeners own{{*net::parse_endpoint("127.0.0.1:6443", 0)}, {}};
  const auto result = resolve_members({upstream("api", "localhost")},
                                      {answer("localhost", {"127.0.0.1", "10.0.0.1"})}, own, {});
  EXPECT_THAT(shown(result), ElementsAre("api/10.0.0.1=10.0.0.1:6443"));
}

TEST(Membership, AWildcardListenerStandsForEveryAddressOfThisHost) {
  const own_listeners own{{*net::parse_endpoint("0.0.0.0:6443", 0)},
                          {make_address("10.0.0.5"), make_address("fd00::5")}};
  const auto is_own = [&](const char* address) {
    return config::is_own_listener(*net::parse_endpoint(address, 6443), own.listeners,
                                   own.host_addresses);
  };
  EXPECT_TRUE(is_own("10.0.0.5"));
  EXPECT_TRUE(is_own("127.0.0.1"));
  EXPECT_TRUE(is_own("127.0.0.99"));
  EXPECT_TRUE(is_own("0.0.0.0"));
  EXPECT_FALSE(is_own("10.0.0.6"));
  EXPECT_FALSE(is_own("10.0.0.5:7443"));
  EXPECT_FALSE(is_own("[fd00::5]")) << "an IPv4 wildcard takes no IPv6 connection";
}

TEST(Membership, TheUnspecifiedAddressReachesALoopbackListener) {
  const own_listeners own{{*net::parse_endpoint("127.0.0.1:6443", 0)}, {}};
  EXPECT_TRUE(config::is_own_listener(*net::parse_endpoint("0.0.0.0:6443", 0), own.listeners, {}));
  EXPECT_FALSE(config::is_own_listener(*net::parse_endpoint("[::]:6443", 0), own.listeners, {}));
}

TEST(Membership, AddressesOfANameThatIsNoLongerConfiguredAreForgotten) {
  const auto known = resolve_members({upstream("api", "api.example")},
                                     {answer("api.example", {"10.0.0.11"})}, {}, {})
                         .known;
  EXPECT_THAT(resolve_members({upstream("cp", "10.0.0.1")}, {}, {}, known).known, IsEmpty());
}

}  // namespace
}  // namespace kubelane::proxy
