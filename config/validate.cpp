#include "config/validate.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace kubelane::config {
namespace {

namespace ip = boost::asio::ip;
using addresses = std::vector<ip::address>;

/// Collects what the rules find, with the place of each.
class findings {
 public:
  explicit findings(const positions& written) : written_(written) {}

  bool has(std::string_view path) const { return written_.find(path) != written_.end(); }

  void error(std::string path, std::string message) {
    found_.list.push_back({place(path), std::move(path), std::move(message)});
  }
  /// About two keys: stands at the other if only that one is in the file.
  void error(std::string path, std::string_view other, std::string message) {
    const auto at = place(has(path) || !has(other) ? std::string_view(path) : other);
    found_.list.push_back({at, std::move(path), std::move(message)});
  }
  void warning(std::string path, std::string message) {
    found_.warnings.push_back({place(path), std::move(path), std::move(message)});
  }

  problems take() { return std::move(found_); }

 private:
  position place(std::string_view path) const {
    for (;;) {
      if (const auto found = written_.find(path); found != written_.end()) return found->second;
      const auto cut = path.find_last_of(".[");
      if (cut == std::string_view::npos) return {1, 1};
      path = path.substr(0, cut);
    }
  }

  const positions& written_;
  problems found_;
};

struct listener {
  net::endpoint at;
  std::string path;
};

/// Those that were read well, with their paths.
std::vector<listener> listeners_of(const config& of) {
  std::vector<listener> result;
  const auto add = [&](const std::vector<net::endpoint>& from, const std::string& path) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i].port() != 0) result.push_back({from[i], path + "[" + std::to_string(i) + "]"});
  };
  add(of.listen, "listen");
  if (of.admin_listen.port() != 0) result.push_back({of.admin_listen, "admin.listen"});
  add(of.metrics_listen, "metrics.listen");
  return result;
}

/// Can the kernel not give both? A wildcard takes every address of its family; IPv6 listeners leave
/// IPv4 alone.
bool collide(const net::endpoint& a, const net::endpoint& b) {
  if (a.port() != b.port() || a.address().is_v4() != b.address().is_v4()) return false;
  return a.address() == b.address() || a.address().is_unspecified() || b.address().is_unspecified();
}

bool is_link_local_without_zone(const ip::address& address) {
  return address.is_v6() && address.to_v6().is_link_local() && address.to_v6().scope_id() == 0;
}

void check_listeners(const config& of, findings& out) {
  if (of.listen.empty()) out.error("listen", "is empty: give an address and a port to listen on");
  const auto all = listeners_of(of);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto shown = net::to_string(all[i].at);
    if (all[i].at.address().is_multicast())
      out.error(all[i].path, quote(shown) + " is a multicast address: nothing can listen there");
    if (is_link_local_without_zone(all[i].at.address()))
      out.error(all[i].path, quote(shown) + " is link-local: name its interface, as fe80::1%eth0");
    for (std::size_t j = 0; j < i; ++j)
      if (collide(all[i].at, all[j].at))
        out.error(all[i].path, quote(shown) + " is taken by " + all[j].path + " " +
                                   quote(net::to_string(all[j].at)));
  }
}

bool listens(const std::vector<net::endpoint>& on, const std::string& address, std::uint16_t port) {
  return std::find(on.begin(), on.end(), net::endpoint(ip::make_address(address), port)) !=
         on.end();
}

void warn_of_listeners(const config& of, findings& out) {
  const auto& admin = of.admin_listen;
  if (admin.port() != 0 && !net::is_loopback(admin))
    out.warning("admin.listen", quote(net::to_string(admin)) +
                                    " is open to the network: everyone there can read the status "
                                    "page; for metrics alone there is metrics.listen");
  for (const auto& each : of.listen) {
    const auto port = each.port();
    const bool is_local = each.address() == ip::make_address("127.0.0.1") ||
                          each.address() == ip::make_address("0.0.0.0");
    if (!is_local || port == 0 || listens(of.listen, "::1", port) || listens(of.listen, "::", port))
      continue;
    out.warning("listen", "nothing listens on [::1]:" + std::to_string(port) +
                              ", where `localhost` leads first: kubeconfigs must say "
                              "https://127.0.0.1:" +
                              std::to_string(port));
    return;
  }
}

void warn_of_metrics(const config& of, findings& out) {
  if (of.metrics_listen.empty() && !of.metrics_allow.empty())
    out.warning("metrics.allow", "does nothing without metrics.listen");
  if (out.has("metrics.allow")) return;  // even an empty one: then everybody is meant
  for (std::size_t i = 0; i < of.metrics_listen.size(); ++i) {
    const auto& each = of.metrics_listen[i];
    if (each.port() == 0 || net::is_loopback(each)) continue;
    out.warning(
        "metrics.listen[" + std::to_string(i) + "]",
        quote(net::to_string(each)) +
            " answers everybody who reaches it: name who may ask in metrics.allow ([]: everybody)");
  }
}

/// Where a literal address or `localhost` leads; nothing for other names.
std::vector<net::endpoint> known_targets(const net::host_port& address) {
  if (address.host == "localhost")
    return {net::endpoint(ip::make_address("127.0.0.1"), address.port),
            net::endpoint(ip::make_address("::1"), address.port)};
  if (const auto found = net::parse_endpoint(net::to_string(address), address.port))
    return {*found};
  return {};
}

void check_target(const net::endpoint& target, const std::string& path,
                  const std::vector<net::endpoint>& own, const addresses& host, findings& out) {
  const auto shown = quote(net::to_string(target));
  const auto& address = target.address();
  const bool is_broadcast = address.is_v4() && address.to_v4() == ip::address_v4::broadcast();
  if (address.is_unspecified() || address.is_multicast() || is_broadcast)
    out.error(path, shown + " is no address of one server");
  else if (is_link_local_without_zone(address))
    out.error(path, shown + " is link-local: name its interface, as fe80::1%eth0");
  else if (is_own_listener(target, own, host))
    out.error(path, shown + " is kubelane's own listener: name the API server itself");
}

/// An upstream without a name of its own is called as its address is.
bool is_named(const upstream& of) {
  return of.name != net::to_string(of.address);
}

void check_upstreams(const config& of, const addresses& host, findings& out) {
  const auto own = all_listeners(of);
  std::map<std::string, std::string> names;
  std::map<net::host_port, std::string> seen;
  for (std::size_t i = 0; i < of.upstreams.size(); ++i) {
    const auto& each = of.upstreams[i];
    const auto path = "upstreams[" + std::to_string(i) + "]";
    if (each.address.host.empty()) continue;
    for (const auto& target : known_targets(each.address))
      check_target(target, path + ".address", own, host, out);
    const auto [same, is_new] = seen.emplace(each.address, path);
    if (!is_new)
      out.warning(path + ".address", quote(net::to_string(each.address)) + " is the address of " +
                                         same->second + " too: they are one upstream");
    if (!is_new && !is_named(each)) continue;
    const auto [other, is_first] = names.emplace(each.name, path);
    if (!is_first)
      out.error(path + ".name", quote(each.name) + " is the name of " + other->second + " too");
  }
}

void check_upstream_count(const config& of, findings& out) {
  // One that is too long or no list was complained about, and left empty.
  if (!of.upstreams.empty()) return;
  if (out.has("upstreams[0]")) return;
  out.error("upstreams", out.has("upstreams") ? "is empty: name at least one API server"
                                              : "is missing: name at least one API server");
}

void warn_of_zone(const config& of, findings& out) {
  const auto is_near = [&](const upstream& each) { return each.zone == of.zone; };
  if (of.zone.empty() || std::any_of(of.upstreams.begin(), of.upstreams.end(), is_near)) return;
  out.warning("zone", "no upstream is in zone " + quote(of.zone));
}

void check_probe_path(const struct health& of, findings& out) {
  const auto allowed = [](unsigned char c) { return c > 0x20 && c < 0x7f && c != '#'; };
  if (!of.path.starts_with('/') || !std::all_of(of.path.begin(), of.path.end(), allowed))
    out.error("health.path",
              quote(of.path) + " is not a path: write one as /readyz, in ASCII without blanks");
  else if (of.path.size() > 1024)
    out.error("health.path", "is longer than 1024 bytes");
}

void check_tls(const probe_tls& of, findings& out) {
  if (of.client_cert_file.empty() != of.client_key_file.empty()) {
    const std::string lone = of.client_cert_file.empty() ? "client_key_file" : "client_cert_file";
    const std::string missing =
        of.client_cert_file.empty() ? "client_cert_file" : "client_key_file";
    out.error("health.tls." + lone, "needs " + missing + " beside it");
  }
  if (!of.kubeconfig.empty()) {
    for (const std::string other : {"ca_file", "client_cert_file", "client_key_file"})
      if (out.has("health.tls." + other))
        out.error("health.tls." + other,
                  "cannot stand beside kubeconfig, which gives CA and credentials: keep one");
  } else if (of.ca_file.empty() && of.verify != verify_mode::none) {
    out.error("health.tls.ca_file",
              "is empty: verify " + std::string(to_string(of.verify)) + " needs the cluster's CA");
  }
  if (of.server_name.empty() && of.verify == verify_mode::full)
    out.error("health.tls.server_name", "is empty: verify full needs a name to expect");
  if (of.verify == verify_mode::none)
    out.warning("health.tls.verify",
                "none takes every server that answers for an API server: use full or ca");
}

void check_order(const config& of, findings& out) {
  if (of.dial.total_timeout < of.dial.attempt_timeout)
    out.error("dial.total_timeout", "dial.attempt_timeout",
              to_string(of.dial.total_timeout) + " is below attempt_timeout " +
                  to_string(of.dial.attempt_timeout));
  if (of.failover.reset_after < of.failover.suspect_after)
    out.error("failover.reset_after", "failover.suspect_after",
              to_string(of.failover.reset_after) + " is below suspect_after " +
                  to_string(of.failover.suspect_after));
}

}  // namespace

problems validate(const config& of, const positions& written, const addresses& host_addresses) {
  findings out(written);
  check_listeners(of, out);
  warn_of_listeners(of, out);
  warn_of_metrics(of, out);
  check_upstream_count(of, out);
  check_upstreams(of, host_addresses, out);
  warn_of_zone(of, out);
  check_probe_path(of.health, out);
  check_tls(of.health.tls, out);
  check_order(of, out);
  return out.take();
}

bool is_own_listener(const net::endpoint& target, const std::vector<net::endpoint>& listeners,
                     const addresses& host_addresses) {
  const auto& address = target.address();
  const bool is_local =
      address.is_loopback() || address.is_unspecified() ||
      std::find(host_addresses.begin(), host_addresses.end(), address) != host_addresses.end();
  return std::any_of(listeners.begin(), listeners.end(), [&](const net::endpoint& each) {
    if (each.port() != target.port()) return false;
    if (each.address() == address) return true;
    // Dialling the unspecified address reaches the loopback.
    if (address.is_unspecified() && each.address().is_loopback())
      return each.address().is_v4() == address.is_v4();
    // `::` is held to take IPv4 too: a connection that never comes back to itself is worth the
    // rare server that is refused for nothing.
    const bool takes = each.address().is_v6() || address.is_v4();
    return is_local && takes && each.address().is_unspecified();
  });
}

std::vector<net::endpoint> all_listeners(const config& of) {
  auto result = of.listen;
  result.push_back(of.admin_listen);
  result.insert(result.end(), of.metrics_listen.begin(), of.metrics_listen.end());
  return result;
}

void merge_same_addresses(config& of) {
  std::set<net::host_port> seen;
  std::erase_if(of.upstreams,
                [&](const upstream& each) { return !seen.insert(each.address).second; });
}

}  // namespace kubelane::config
