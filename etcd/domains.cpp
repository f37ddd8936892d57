#include "etcd/domains.hpp"

#include "etcd/decide.hpp"
#include "etcd/url.hpp"

#include <algorithm>
#include <map>

namespace kubelane::etcd {
namespace {

namespace quorum = health::quorum;

std::string comma(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names) result += (result.empty() ? "" : ", ") + name;
  return result;
}

bool is_at(const member_view& member, const std::string& address) {
  for (const auto* list : {&member.listed.client_urls, &member.listed.peer_urls})
    for (const auto& text : *list)
      if (const auto parsed = parse_url(text); parsed && parsed->at.host == address) return true;
  return false;
}

const placed_host* host_of(const member_view& member, const std::vector<placed_host>& hosts) {
  for (const auto& one : hosts)
    if (one.name == member.listed.name) return &one;
  for (const auto& one : hosts)
    if (!one.address.empty() && is_at(member, one.address)) return &one;
  return nullptr;
}

int count_up(const std::vector<const member_view*>& members) {
  return static_cast<int>(std::count_if(members.begin(), members.end(), [](const member_view* one) {
    return one->state == member_state::up || one->state == member_state::behind;
  }));
}

void note(cluster_view& view, std::string rule, std::string message) {
  view.problems.push_back({problem::severity::notice, std::move(rule), "", std::move(message)});
}

}  // namespace

boost::system::result<domain, std::string> parse_domain(const std::string& text) {
  // In place: a domain could be made of an error's text, too.
  const boost::system::result<domain, std::string> wrong(
      boost::system::in_place_error,
      "`" + text + "` is no domain: write NAME=MEMBER+MEMBER, as in a=e1+e2");
  const auto equals = text.find('=');
  if (equals == text.npos || equals == 0 || text.size() > 4096) return wrong;
  domain result{text.substr(0, equals), {}};
  for (auto begin = equals + 1;;) {
    const auto plus = text.find('+', begin);
    result.members.push_back(text.substr(begin, plus - begin));
    if (result.members.back().empty()) return wrong;
    if (plus == text.npos) return result;
    begin = plus + 1;
  }
}

std::vector<domain> place(const cluster_view& members, const std::vector<placed_host>& hosts) {
  std::vector<domain> result;
  for (const auto& member : members.members) {
    const auto* host = host_of(member, hosts);
    if (host == nullptr || host->zone.empty()) continue;
    auto found = std::find_if(result.begin(), result.end(),
                              [&](const domain& one) { return one.name == host->zone; });
    if (found == result.end()) found = result.insert(result.end(), {host->zone, {}});
    found->members.push_back(member.name());
  }
  return result;
}

boost::system::result<std::vector<domain_loss>, std::string> lose_domains(
    cluster_view& view, const std::vector<domain>& domains) {
  std::vector<domain_loss> result;
  std::map<member_id, std::string> placed;
  for (const auto& one : domains) {
    std::vector<const member_view*> voters;
    for (const auto& name : one.members) {
      const auto member = find_member(view, name);
      if (!member) return member.error();
      const auto [at, is_new] = placed.emplace((*member)->listed.id, one.name);
      if (!is_new) return name + " is in two domains, " + at->second + " and " + one.name;
      if ((*member)->votes()) voters.push_back(*member);
    }
    const int all = view.voters.members;
    domain_loss loss{one.name,
                     {},
                     quorum::lose(view.voters, count_up(voters)),
                     quorum::lose({all, all}, static_cast<int>(voters.size())).met()};
    for (const auto* voter : voters) loss.members.push_back(voter->name());
    result.push_back(std::move(loss));
  }
  for (const auto& one : result)
    if (!one.survives)
      note(view, "domain-loses-quorum",
           "the loss of " + one.name + " (" + comma(one.members) +
               ") stops writes, whenever it comes");
  std::vector<std::string> nowhere;
  for (const auto& member : view.members)
    if (member.votes() && !placed.contains(member.listed.id)) nowhere.push_back(member.name());
  if (!result.empty() && !nowhere.empty())
    note(view, "no-domain",
         comma(nowhere) + (nowhere.size() == 1 ? " is" : " are") +
             " in no domain, and counted as lost with none");
  return result;
}

}  // namespace kubelane::etcd
