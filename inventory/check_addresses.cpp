#include "inventory/checks.hpp"

#include <boost/asio/ip/address.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace kubelane::inventory {
namespace {

namespace ip = boost::asio::ip;

// Every host whose address matters, once.
std::vector<node> all_nodes(const cluster& seen) {
  std::vector<node> result;
  std::set<int> known;
  for (const auto* list : {&seen.control_planes, &seen.etcd, &seen.workers})
    for (const auto& one : *list)
      if (known.insert(one.host).second) result.push_back(one);
  return result;
}

// What is wrong with an address variable's value; empty: nothing.
std::string fault(const value& of, bool want_ipv4) {
  if (of.is == value::kind::null || (of.is == value::kind::text && of.text.empty()))
    return "is set but empty, and kubespray does not fall back to another: remove it or fill it in";
  auto text = scalar_text(of);
  const auto quoted = "`" + text + "` ";
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  boost::system::error_code error;
  const auto address = ip::make_address(text, error);
  if (of.is != value::kind::text || error) return quoted + "is no IP address";
  if (address.is_unspecified()) return quoted + "is the address of no host in particular";
  if (address.is_loopback()) return quoted + "is a loopback address, which other hosts cannot dial";
  if (address.is_multicast()) return quoted + "is a multicast address";
  if (address.is_v6() && (address.to_v6().is_link_local() || text.find('%') != std::string::npos))
    return quoted + "is link-local: it holds on one link alone, and certificates cannot name it";
  if (address.is_v4() && address.to_v4() == ip::address_v4::broadcast())
    return quoted + "is the broadcast address";
  if (address.is_v6() && address.to_v6().is_v4_mapped()) return {};
  if (address.is_v4() != want_ipv4)
    return quoted + (want_ipv4 ? "is IPv6; that is for ip6 and access_ip6"
                               : "is IPv4; that is for ip and access_ip");
  return {};
}

class address_checker {
 public:
  address_checker(const model& in, const settings& from, std::vector<finding>& findings)
      : model_(in), from_(from), findings_(findings) {}

  void values_of(const node& one) {
    for (const char* key : {"access_ip", "ip", "access_ip6", "ip6"}) {
      const auto found = from_.get(one.host, key);
      if (found.is != setting::state::set) continue;
      const bool is_ipv6 = std::string_view(key).ends_with('6');
      const auto wrong = fault(*found.content, !is_ipv6);
      if (!wrong.empty())
        findings_.push_back({"bad-address", severity::error, one.name, found.at(),
                             std::string(key) + " of " + one.name + " " +
                                 (wrong.starts_with('`') ? "is wrong: " : "") + wrong});
      else
        remember(scalar_text(*found.content), one.name, found.at());
    }
  }

  void source_of(const node& one) {
    if (one.address.from != "facts") return;
    const auto ssh = from_.get(one.host, "ansible_host");
    const place at = ssh.is == setting::state::unset
                         ? model_.hosts[static_cast<std::size_t>(one.host)].at
                         : ssh.at();
    const bool is_ssh = ssh.is == setting::state::set;
    findings_.push_back(
        {is_ssh ? "address-from-ansible-host-only" : "address-unknown", severity::warning, one.name,
         at,
         one.name +
             " has no ip or access_ip: its address depends on facts (its default route's "
             "address, and 127.0.0.1 where facts are missing, as under --limit)" +
             (is_ssh ? "; ansible_host is for SSH, kubespray never takes it as an address" : "") +
             ". Set ip=" +
             (is_ssh && ssh.content->is == value::kind::text
                  ? " to what " + ssh.content->text + " is inside the cluster"
                  : "ADDRESS")});
  }

  // Two hosts that Ansible would take for one.
  void ssh_of(const node& one) {
    const auto ssh = from_.get(one.host, "ansible_host");
    if (ssh.is != setting::state::set) return;
    const auto port = from_.text(one.host, "ansible_port", "22");
    const auto target = scalar_text(*ssh.content) + " port " + port.value_or("");
    const auto [found, is_new] = ssh_.try_emplace(target, one.name);
    if (is_new) return;
    findings_.push_back({"duplicate-address", severity::warning, one.name, ssh.at(),
                         found->second + " and " + one.name + " share ansible_host " + target +
                             ": Ansible would set up one machine as both"});
  }

  // Its SSH address is another host's cluster address.
  void crossed(const node& one) {
    const auto ssh = from_.get(one.host, "ansible_host");
    if (ssh.is != setting::state::set) return;
    const auto found = holders_.find(scalar_text(*ssh.content));
    if (found == holders_.end() || found->second == one.name) return;
    findings_.push_back({"duplicate-address", severity::warning, one.name, ssh.at(),
                         "ansible_host of " + one.name + " is the ip of " + found->second +
                             ": Ansible would set up " + found->second + " as " + one.name});
  }

 private:
  void remember(std::string text, const std::string& name, place at) {
    if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
    boost::system::error_code error;
    auto address = ip::make_address(text, error);
    if (address.is_v6() && address.to_v6().is_v4_mapped())
      address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
    text = address.to_string();
    const auto [found, is_new] = holders_.try_emplace(text, name);
    if (is_new || found->second == name) return;
    findings_.push_back({"duplicate-address", severity::error, name, at,
                         found->second + " and " + name + " share " + text});
  }

  const model& model_;
  const settings& from_;
  std::vector<finding>& findings_;
  std::map<std::string, std::string> holders_;
  std::map<std::string, std::string> ssh_;
};

}  // namespace

void check_addresses(const model& in, const cluster& seen, const settings& from,
                     std::vector<finding>& findings) {
  address_checker checker(in, from, findings);
  const auto nodes = all_nodes(seen);
  for (const auto& one : nodes) checker.values_of(one);
  const auto servers = seen.control_planes.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool matters =
        i < servers || std::any_of(seen.etcd.begin(), seen.etcd.end(), [&](const node& member) {
          return member.host == nodes[i].host;
        });
    if (matters) checker.source_of(nodes[i]);
  }
  for (const auto& one : nodes) checker.ssh_of(one);
  for (const auto& one : nodes) checker.crossed(one);
}

}  // namespace kubelane::inventory
