#include "node/rules.hpp"

#include <algorithm>
#include <cstdlib>

namespace kubelane::node {
namespace {

using namespace std::chrono_literals;
using boost::asio::ip::address;

// Leases, tokens and certificates bear a few seconds; what is more grows, as nothing sets the
// clock.
constexpr auto clock_warning = 5s;
constexpr auto clock_error = 60s;
// The kubelet renews its certificate when a tenth to three tenths of a year are left.
constexpr auto expiry_warning = std::chrono::days(30);
constexpr auto expiry_error = std::chrono::days(7);

struct target {
  std::string host;
  int port = 443;
};

std::optional<target> target_of(std::string url) {
  const auto scheme = url.find("://");
  if (scheme != std::string::npos) url = url.substr(scheme + 3);
  const auto found = net::parse_host_port(url.substr(0, url.find('/')), 443);
  if (!found) return std::nullopt;
  return target{found->host, found->port};
}

std::optional<address> to_address(const std::string& text) {
  boost::system::error_code error;
  const auto found = boost::asio::ip::make_address(text, error);
  return error ? std::nullopt : std::optional(found);
}

const char* name_of(client who) {
  switch (who) {
    case client::kubelet:
      return "the kubelet";
    case client::kube_proxy:
      return "kube-proxy";
    case client::cni:
      return "the CNI";
    case client::other:
      return "whoever uses it";
  }
  return "";
}

class examiner {
 public:
  explicit examiner(const facts& of) : facts_(of) {}

  std::vector<finding> run() {
    if (!facts_.config_problem.empty())
      say("configuration", severity::error, facts_.config_path, facts_.config_problem);
    for (const auto& each : facts_.manifests) old_proxy(each);
    if (facts_.listeners) ports();
    for (const auto& each : facts_.kubeconfigs) kubeconfig_file(each);
    selinux();
    for (const auto& each : facts_.servers) clock(each);
    for (const auto& each : facts_.certificates) expiry(each);
    return std::move(findings_);
  }

 private:
  void say(std::string rule, severity how, std::string at, std::string message) {
    findings_.push_back({std::move(rule), how, std::move(at), std::move(message)});
  }

  void old_proxy(const manifest& each) {
    say("proxy-manifest", severity::error, each.path,
        "the kubelet runs " + each.proxy +
            " from it, on kubelane's port. Set loadbalancer_apiserver_type: kubelane in "
            "kubespray's "
            "group variables, or each of its runs puts it back; then run "
            "deploy/ansible/kubelane.yml, "
            "which moves it away");
  }

  static bool covers(const listener& one, const net::endpoint& wanted) {
    if (one.address.port() != wanted.port()) return false;
    const auto& at = one.address.address();
    if (at == wanted.address()) return true;
    return at.is_unspecified() && (at.is_v6() || wanted.address().is_v4());
  }

  const listener* holder_of(const net::endpoint& wanted) const {
    const listener* found = nullptr;
    for (const auto& each : *facts_.listeners) {
      if (!covers(each, wanted)) continue;
      if (found == nullptr || each.address.address() == wanted.address()) found = &each;
    }
    return found;
  }

  void ports() {
    for (const auto& wanted : facts_.listen) {
      const auto* holder = holder_of(wanted);
      if (holder != nullptr)
        held(wanted, *holder, "kubelane waits for it");
      else if (wanted.address().is_v4() || facts_.has_ipv6_loopback.value_or(true))
        say("not-serving", severity::error, net::to_string(wanted),
            "nobody listens there: see `systemctl status kubelane`, then `systemctl start "
            "kubelane`");
    }
    if (const auto* holder = holder_of(facts_.admin))
      held(facts_.admin, *holder, "kubelane answers neither /readyz nor /metrics");
  }

  void held(const net::endpoint& wanted, const listener& by, const std::string& effect) {
    if (by.process == "kubelane") return;
    const bool is_proxy = by.process == "nginx" || by.process == "haproxy";
    const auto who = by.process.empty() ? std::string("a process that only root may see")
                                        : by.process + " (process " + std::to_string(by.pid) + ")";
    say(is_proxy ? "proxy-process" : "port-held", severity::error, net::to_string(wanted),
        "is held by " + who + ": " + effect + ". " +
            (is_proxy
                 ? "Move the proxy's manifest out of /etc/kubernetes/manifests; kubelane takes "
                   "the port within ten milliseconds"
                 : "End it, or give it another address; on a control plane, run no kubelane"));
  }

  void kubeconfig_file(const kubeconfig& each) {
    if (!each.problem.empty())
      return say("kubeconfig-unreadable", severity::warning, each.path,
                 each.problem + ": what " + name_of(each.who) + " dials is not known");
    const auto dialled = target_of(each.server);
    if (!dialled)
      return say("kubeconfig-elsewhere", severity::error, each.path,
                 "server: " + each.server + " is no address. " + right_form());
    const bool by_name = dialled->host == "localhost";
    const auto at = to_address(dialled->host);
    if (!by_name && !(at && at->is_loopback())) return elsewhere(each, *dialled);
    if (by_name)
      by_localhost(each, dialled->port);
    else if (!listens_on(*at, dialled->port))
      differs(each, dialled->host, dialled->port);
  }

  std::string right_form() const {
    return "Right: https://" + (facts_.listen.empty() ? std::string("127.0.0.1:6443")
                                                      : net::to_string(facts_.listen.front()));
  }

  // A CNI that goes through the service's address uses kube-proxy, which knows every API server.
  void elsewhere(const kubeconfig& each, const target& dialled) {
    const auto& servers = facts_.upstreams;
    const bool is_server = std::find(servers.begin(), servers.end(), dialled.host) != servers.end();
    const bool is_service = each.who == client::cni && dialled.port == 443 && !is_server;
    const bool is_minor = each.who == client::other || is_service;
    std::string text = std::string(name_of(each.who)) + " dials " + each.server + ", not kubelane";
    if (is_server) text += ": one API server alone, and the others do not help when it is gone";
    say("kubeconfig-elsewhere", is_minor ? severity::warning : severity::error, each.path,
        text + ". " + right_form());
  }

  bool listens_on(const address& at, int port) const {
    return std::any_of(facts_.listen.begin(), facts_.listen.end(), [&](const auto& each) {
      return each.port() == port &&
             (each.address() == at ||
              (each.address().is_unspecified() && each.address().is_v4() == at.is_v4()));
    });
  }

  void differs(const kubeconfig& each, const std::string& host, int port) {
    std::string own;
    for (const auto& one : facts_.listen) own += (own.empty() ? "" : ", ") + net::to_string(one);
    say("ports-differ", severity::error, each.path,
        std::string(name_of(each.who)) + " dials " + host + ":" + std::to_string(port) +
            ", and kubelane listens on " + own + ". Add the address to listen in " +
            facts_.config_path);
  }

  // Clients take the addresses of the name in their order, and not all of them try a second one.
  void by_localhost(const kubeconfig& each, int port) {
    const auto& all = facts_.localhost.addresses;
    const auto is_served = [&](const address& at) { return listens_on(at, port); };
    const bool is_any = all.empty()
                            ? listens_on(address(boost::asio::ip::address_v4::loopback()), port)
                            : std::any_of(all.begin(), all.end(), is_served);
    if (!is_any) return differs(each, "localhost", port);
    const auto missing = std::find_if_not(all.begin(), all.end(), is_served);
    if (missing == all.end()) return;
    const bool is_first = missing == all.begin();
    const auto wanted = net::to_string(net::endpoint(*missing, static_cast<std::uint16_t>(port)));
    say("localhost-family", is_first ? severity::error : severity::warning, each.path,
        std::string(name_of(each.who)) + " dials localhost, which is " +
            (is_first ? "first " : "also ") + missing->to_string() + " by " +
            facts_.localhost.said_by + ", and kubelane does not listen there. Add " + wanted +
            " to listen in " + facts_.config_path);
  }

  // Which ports a domain may use is in the policy, which only semanage reads.
  void selinux() {
    const auto& found = facts_.selinux;
    if (found.how == selinux::mode::absent) return;
    const bool enforces = found.how == selinux::mode::enforcing;
    const std::string place = "/sys/fs/selinux/enforce";
    for (const auto& label : found.ports)
      for (const auto& wanted : facts_.listen)
        if (wanted.port() >= label.first && wanted.port() <= label.last)
          note_label(label, wanted.port(), enforces);
    if (!enforces) return;
    const bool is_free = found.domain.starts_with("unconfined") || found.domain == "initrc_t" ||
                         found.domain == "spc_t";
    if (is_free)
      return say("selinux-port", severity::notice, place,
                 "SELinux is enforcing, and kubelane runs as " + found.domain +
                     ", which may use any port");
    say("selinux-port", severity::warning, place,
        "SELinux is enforcing, and kubelane " +
            (found.domain.empty() ? std::string("does not run, so that its domain is not known")
                                  : "runs as " + found.domain) +
            ": look for denials with `ausearch -m avc -c kubelane`, and allow its ports with "
            "`semanage port -a -t TYPE -p tcp PORT`");
  }

  void note_label(const selinux::label& label, int port, bool enforces) {
    say("selinux-port", enforces ? severity::warning : severity::notice, label.place,
        "port " + std::to_string(port) + " was given the label " + label.type +
            ": a confined domain needs leave to use that label, for listening and for connecting");
  }

  void clock(const answered& each) {
    const auto off = each.ahead < 0s ? -each.ahead : each.ahead;
    if (off <= clock_warning) return;
    say("clock-off", off > clock_error ? severity::error : severity::warning, each.name,
        "its clock is " + std::to_string(off.count()) + " s " +
            (each.ahead < 0s ? "behind" : "ahead of") +
            " this node's: certificates and tokens will be refused. See `timedatectl` on both");
  }

  void expiry(const certificate& each) {
    if (each.until == moment{}) return;
    if (each.from > facts_.now)
      return say("certificate-expiry", severity::error, each.place,
                 each.what + " is not valid before " + in_days(each.from) +
                     ". Is this node's clock right?");
    const auto left = each.until - facts_.now;
    if (left > expiry_warning) return;
    const bool is_over = left <= 0s;
    say("certificate-expiry", left > expiry_error ? severity::warning : severity::error, each.place,
        each.what + (is_over ? " has expired " : " expires ") + in_days(each.until) +
            ". Renew it: the kubelet's renews itself if rotateCertificates is on; the control "
            "planes' with `kubeadm certs renew all` or kubespray's upgrade-cluster.yml");
  }

  std::string in_days(moment when) const {
    const auto apart = when > facts_.now ? when - facts_.now : facts_.now - when;
    const auto hours = std::chrono::duration_cast<std::chrono::hours>(apart).count();
    const auto text =
        hours < 48 ? std::to_string(hours) + " hours" : std::to_string(hours / 24) + " days";
    return when > facts_.now ? "in " + text : text + " ago";
  }

  const facts& facts_;
  std::vector<finding> findings_;
};

int rank(const std::string& rule) {
  constexpr const char* order[] = {"configuration",
                                   "proxy-manifest",
                                   "proxy-process",
                                   "port-held",
                                   "not-serving",
                                   "kubeconfig-unreadable",
                                   "kubeconfig-elsewhere",
                                   "ports-differ",
                                   "localhost-family",
                                   "selinux-port",
                                   "clock-off",
                                   "certificate-expiry"};
  return static_cast<int>(std::find(std::begin(order), std::end(order), rule) - std::begin(order));
}

}  // namespace

std::string_view to_string(severity how) {
  switch (how) {
    case severity::error:
      return "error";
    case severity::warning:
      return "warning";
    case severity::notice:
      return "notice";
  }
  return "";
}

std::vector<finding> examine(const facts& of) {
  auto found = examiner(of).run();
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return rank(a.rule) < rank(b.rule); });
  return found;
}

}  // namespace kubelane::node
