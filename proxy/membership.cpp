#include "proxy/membership.hpp"

#include "config/validate.hpp"

#include <algorithm>

namespace kubelane::proxy {
namespace {

namespace ip = boost::asio::ip;

constexpr int absences_until_gone = 3;

// As an endpoint stores it: an IPv4-mapped address is the IPv4 address.
ip::address plain(const ip::address& address) {
  return net::endpoint(address, 1).address();
}

bool contains(const std::vector<ip::address>& list, const ip::address& address) {
  return std::any_of(list.begin(), list.end(),
                     [&](const ip::address& each) { return plain(each) == address; });
}

void note_answer(std::vector<known_address>& known, const lookup& answer) {
  if (!answer.addresses || answer.addresses->empty()) return;
  for (auto& each : known) {
    if (each.host != answer.host) continue;
    each.absences = contains(*answer.addresses, each.address) ? 0 : each.absences + 1;
  }
  std::erase_if(known, [&](const known_address& each) {
    return each.host == answer.host && each.absences >= absences_until_gone;
  });
  for (const auto& address : *answer.addresses) {
    const bool old = std::any_of(known.begin(), known.end(), [&](const known_address& each) {
      return each.host == answer.host && each.address == plain(address);
    });
    if (!old) known.push_back({answer.host, plain(address), 0});
  }
}

bool is_configured(const std::vector<config::upstream>& configured, const std::string& host) {
  return std::any_of(configured.begin(), configured.end(),
                     [&](const config::upstream& each) { return each.address.host == host; });
}

std::vector<wanted_upstream> members_of(const config::upstream& from,
                                        const std::vector<known_address>& known) {
  boost::system::error_code not_an_address;
  const auto address = ip::make_address(from.address.host, not_an_address);
  const auto member = health::membership::configured;
  if (!not_an_address)
    return {{from.name, net::endpoint(address, from.address.port), from.zone, member}};
  std::vector<ip::address> addresses;
  for (const auto& each : known)
    if (each.host == from.address.host) addresses.push_back(each.address);
  if (addresses.empty()) return {{from.name, std::nullopt, from.zone, member}};
  std::sort(addresses.begin(), addresses.end());
  std::vector<wanted_upstream> members;
  for (const auto& each : addresses)
    members.push_back({from.name + "/" + each.to_string(), net::endpoint(each, from.address.port),
                       from.zone, member});
  return members;
}

void add(membership_result& to, wanted_upstream member, const own_listeners& own) {
  if (member.address) {
    const auto shown = member.name + " (" + net::to_string(*member.address) + ")";
    if (config::is_own_listener(*member.address, own.listeners, own.host_addresses)) {
      to.warnings.push_back("upstream " + shown + " is kubelane's own listener: left out");
      return;
    }
    const auto twin =
        std::find_if(to.wanted.begin(), to.wanted.end(),
                     [&](const wanted_upstream& each) { return each.address == member.address; });
    if (twin != to.wanted.end()) {
      to.warnings.push_back("upstream " + shown + " is the same server as " + twin->name +
                            ": used once");
      return;
    }
  }
  to.wanted.push_back(std::move(member));
}

}  // namespace

membership_result resolve_members(const std::vector<config::upstream>& configured,
                                  const std::vector<lookup>& lookups, const own_listeners& own,
                                  const std::vector<known_address>& known) {
  membership_result result;
  result.known = known;
  for (const auto& answer : lookups) note_answer(result.known, answer);
  std::erase_if(result.known,
                [&](const known_address& each) { return !is_configured(configured, each.host); });
  for (const auto& upstream : configured)
    for (auto& member : members_of(upstream, result.known)) add(result, std::move(member), own);
  return result;
}

}  // namespace kubelane::proxy
