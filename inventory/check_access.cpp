#include "inventory/checks.hpp"

#include <algorithm>
#include <set>

namespace kubelane::inventory {
namespace {

constexpr const char* audit_rule =
    "  - level: None\n    nonResourceURLs: [\"/readyz*\", \"/livez*\"]";

class access_checker {
 public:
  access_checker(const model& in, const cluster& seen, const settings& from,
                 std::vector<finding>& findings)
      : model_(in),
        seen_(seen),
        from_(from),
        findings_(findings),
        host_(!seen.workers.empty()          ? seen.workers.front().host
              : !seen.control_planes.empty() ? seen.control_planes.front().host
                                             : -1) {}

  void run(const check_options& how) {
    route();
    type();
    ports();
    bypassed();
    audit();
    on_control_planes();
    if (!how.node.empty()) on_node(how.node);
  }

 private:
  void say(std::string rule, severity how, place at, std::string message, std::string host = "") {
    findings_.push_back({std::move(rule), how, std::move(host), at, std::move(message)});
  }

  void route() {
    const auto& access = seen_.access;
    const auto kind = access.is;
    if (kind == api_access::kind::first_control_plane && !seen_.workers.empty()) {
      const bool several = seen_.control_planes.size() > 1;
      say("worker-without-access", several ? severity::error : severity::warning, access.at,
          std::string("loadbalancer_apiserver_localhost is off and there is no "
                      "loadbalancer_apiserver, so every worker dials the first control plane ") +
              (several ? "alone: the others do not help when it is gone. Remove the setting (it is "
                         "on by default)"
                       : "itself; with more control planes that would not do"));
    }
    if (kind != api_access::kind::unknown) return;
    const auto external = from_.get(host_, "loadbalancer_apiserver");
    if (external.is != setting::state::set) return;
    const auto* address = find(*external.content, "address");
    if (address != nullptr && has_template(*address)) return;
    say("worker-without-access", severity::error, external.at(),
        "loadbalancer_apiserver is set but has no usable address and port: write "
        "{address: 10.0.0.10, port: 6443}");
  }

  void type() {
    const auto found = from_.get(host_, "loadbalancer_apiserver_type");
    if (found.is != setting::state::set || seen_.access.is != api_access::kind::localhost) return;
    const auto type = scalar_text(*found.content);
    if (type != "nginx" && type != "haproxy") return;
    say("proxy-type", severity::warning, found.at(),
        "loadbalancer_apiserver_type is " + type +
            ": each run of cluster.yml, scale.yml and upgrade-cluster.yml puts that proxy back on "
            "every worker, on kubelane's port. Set it to kubelane");
  }

  void ports() {
    const auto& access = seen_.access;
    if (access.is == api_access::kind::localhost && access.proxy_port && access.server_port &&
        *access.proxy_port != *access.server_port)
      say("ports-differ", severity::warning, from_.get(host_, "loadbalancer_apiserver_port").at(),
          "the kubelet dials localhost:" + std::to_string(*access.proxy_port) +
              " (loadbalancer_apiserver_port), kube-proxy 127.0.0.1:" +
              std::to_string(*access.server_port) +
              " (kube_apiserver_port): kubelane has to listen on both, and inventory config says "
              "so");
    std::set<int> ports;
    for (const auto& one : seen_.control_planes)
      if (one.port) ports.insert(*one.port);
    if (ports.size() > 1)
      say("ports-differ", severity::warning,
          from_.get(seen_.control_planes.front().host, "kube_apiserver_port").at(),
          "kube_apiserver_port differs between control planes, and kubespray's templates use one "
          "host's for all");
    if (access.health_port &&
        (access.health_port == access.proxy_port || access.health_port == access.server_port))
      say("port-conflict", severity::error,
          from_.get(host_, "loadbalancer_apiserver_healthcheck_port").at(),
          "loadbalancer_apiserver_healthcheck_port is " + std::to_string(*access.health_port) +
              ", which the proxy itself listens on");
  }

  void bypassed() {
    const auto& access = seen_.access;
    if (access.is == api_access::kind::external)
      say("proxy-bypassed", severity::warning, access.at,
          "kubelets and kube-proxies dial " + access.kubelet +
              ", not localhost: kubelane would run and serve nobody. Without "
              "loadbalancer_apiserver, workers use the local proxy");
    const auto vip = from_.truth(host_, "kube_vip_enabled", false, "proxy-bypassed");
    if (vip.value_or(false) && access.is == api_access::kind::localhost)
      say("proxy-bypassed", severity::notice, from_.get(host_, "kube_vip_enabled").at(),
          "kube-vip serves clients outside; workers still use localhost, as kubelane needs it");
  }

  void audit() {
    if (seen_.control_planes.empty()) return;
    const int host = seen_.control_planes.front().host;
    for (const char* key : {"kubernetes_audit", "kubernetes_audit_webhook"}) {
      if (!from_.truth(host, key, false, "audit-readyz").value_or(false)) continue;
      const auto* rules = model_.variable(host, "audit_policy_custom_rules");
      if (rules != nullptr && write(*rules).find("/readyz") != std::string::npos) return;
      say("audit-readyz", severity::warning, from_.get(host, key).at(),
          std::string(key) +
              " is on and no rule leaves out /readyz: every probe of every worker becomes an audit "
              "event. Put this before the other rules in audit_policy_custom_rules:\n" +
              audit_rule);
      return;
    }
  }

  static std::string write(const value& of) {
    std::string text = of.is == value::kind::text ? of.text : std::string();
    for (const auto& item : of.items) text += write(item);
    for (const auto& entry : of.members) text += entry.key + write(entry.content);
    return text;
  }

  // Whether an API server with this bind address holds 127.0.0.1 too.
  static bool takes_loopback(const std::string& bind) {
    return bind == "::" || bind == "0.0.0.0" || bind == "127.0.0.1" || bind == "::1" ||
           bind == "localhost";
  }

  bool collides(const node& one) const {
    const auto bind = from_.text(one.host, "kube_apiserver_bind_address", "::");
    const auto port = from_.port(one.host, "loadbalancer_apiserver_port", one.port.value_or(0));
    return bind && port && one.port && takes_loopback(*bind) && *port == *one.port;
  }

  // With another bind address than `::`, kubespray runs the local proxy on control planes too.
  void on_control_planes() {
    if (seen_.access.is != api_access::kind::localhost) return;
    for (const auto& one : seen_.control_planes) {
      const auto bind = from_.get(one.host, "kube_apiserver_bind_address");
      if (bind.is != setting::state::set || scalar_text(*bind.content) == "::") continue;
      if (!collides(one)) continue;
      say("port-conflict", severity::error, bind.at(),
          "kube_apiserver_bind_address is " + scalar_text(*bind.content) + ", so the local proxy " +
              "also runs on " + one.name + ", on port " + std::to_string(*one.port) +
              ", which its API server holds: bind the API server to the host's own address, or "
              "leave the setting out",
          one.name);
    }
  }

  void on_node(const std::string& name) {
    const auto found = std::find_if(seen_.control_planes.begin(), seen_.control_planes.end(),
                                    [&](const node& one) { return one.name == name; });
    if (found == seen_.control_planes.end() || !collides(*found)) return;
    say("port-conflict", severity::error, model_.hosts[static_cast<std::size_t>(found->host)].at,
        name + " is a control plane whose API server holds port " + std::to_string(*found->port) +
            " on every address: a proxy there would keep it from starting. Run no kubelane on " +
            name +
            ", or give it another port (loadbalancer_apiserver_port), or set "
            "kube_apiserver_bind_address to the host's own address",
        name);
  }

  const model& model_;
  const cluster& seen_;
  const settings& from_;
  std::vector<finding>& findings_;
  int host_;
};

}  // namespace

void check_access(const model& in, const cluster& seen, const settings& from,
                  const check_options& how, std::vector<finding>& findings) {
  access_checker(in, seen, from, findings).run(how);
}

}  // namespace kubelane::inventory
