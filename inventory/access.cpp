#include "inventory/cluster.hpp"
#include "net/endpoint.hpp"

#include <cstdlib>

namespace kubelane::inventory {
namespace {

bool is_localhost(std::string_view host) {
  if (host == "localhost" || host == "::1") return true;
  const auto address = net::parse_endpoint(host, 1);
  return address && net::is_loopback(*address);
}

class access_finder {
 public:
  access_finder(const cluster& of, const settings& from)
      : cluster_(of),
        from_(from),
        host_(!of.workers.empty()          ? of.workers.front().host
              : !of.control_planes.empty() ? of.control_planes.front().host
                                           : -1) {}

  api_access run() {
    result_.server_port = from_.port(host_, "kube_apiserver_port", 6443);
    if (result_.server_port)
      result_.proxy_port = from_.port(host_, "loadbalancer_apiserver_port", *result_.server_port);
    result_.health_port = from_.port(host_, "loadbalancer_apiserver_healthcheck_port", 8081);
    const auto external = from_.get(host_, "loadbalancer_apiserver");
    const auto local = from_.truth(host_, "loadbalancer_apiserver_localhost",
                                   external.is == setting::state::unset, "worker-without-access");
    if (explicit_endpoint() || !local || external.is == setting::state::unknown) return result_;
    if (external.is == setting::state::set)
      by_load_balancer(*external.content, *local);
    else if (*local)
      by_localhost();
    else
      by_first_control_plane();
    return result_;
  }

 private:
  // The newer variables, which hold a URL.
  bool explicit_endpoint() {
    for (const char* key :
         {"kube_apiserver_cluster_internal_endpoint", "kube_apiserver_endpoint"}) {
      const auto found = from_.get(host_, key);
      if (found.is == setting::state::unset) continue;
      result_.at = found.at();
      if (found.is == setting::state::unknown) return true;
      auto text = scalar_text(*found.content);
      if (text.starts_with("https://")) text = text.substr(8);
      const auto target = net::parse_host_port(text.substr(0, text.find('/')), 443);
      if (target) set(target->host, target->port);
      return true;
    }
    return false;
  }

  void set(const std::string& host, int port) {
    const bool local = is_localhost(host);
    result_.is = local ? api_access::kind::localhost : api_access::kind::external;
    result_.kubelet = result_.kube_proxy = join_port(host, port);
    if (local) result_.proxy_port = result_.server_port = port;
  }

  void by_load_balancer(const value& external, bool local) {
    result_.at = external.at;
    const auto* address = find(external, "address");
    auto host = local                ? std::string("localhost")
                : address == nullptr ? std::string()
                                     : scalar_text(*address);
    const auto name = from_.get(host_, "apiserver_loadbalancer_domain_name");
    if (name.is == setting::state::unknown) return;
    if (name.is == setting::state::set) host = scalar_text(*name.content);
    const auto* port = find(external, "port");
    const int number = port == nullptr ? result_.server_port.value_or(6443)
                                       : std::atoi(scalar_text(*port).c_str());
    if (!host.empty() && number >= 1 && number <= 65535) set(host, number);
  }

  void by_localhost() {
    result_.is = api_access::kind::localhost;
    result_.at = from_.get(host_, "loadbalancer_apiserver_localhost").at();
    if (result_.proxy_port) result_.kubelet = join_port("localhost", *result_.proxy_port);
    if (result_.server_port) result_.kube_proxy = join_port("127.0.0.1", *result_.server_port);
  }

  void by_first_control_plane() {
    result_.is = api_access::kind::first_control_plane;
    result_.at = from_.get(host_, "loadbalancer_apiserver_localhost").at();
    if (cluster_.control_planes.empty() || !result_.server_port) return;
    const auto& address = cluster_.control_planes.front().address.text;
    if (!address.empty())
      result_.kubelet = result_.kube_proxy = join_port(address, *result_.server_port);
  }

  const cluster& cluster_;
  const settings& from_;
  int host_;
  api_access result_;
};

}  // namespace

api_access access_of(const cluster& of, const settings& from) {
  return access_finder(of, from).run();
}

std::string_view to_string(api_access::kind kind) {
  switch (kind) {
    case api_access::kind::localhost:
      return "localhost";
    case api_access::kind::external:
      return "external";
    case api_access::kind::first_control_plane:
      return "first_control_plane";
    case api_access::kind::unknown:
      return "unknown";
  }
  return {};
}

}  // namespace kubelane::inventory
