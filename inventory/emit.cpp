#include "inventory/emit.hpp"

#include "inventory/checks.hpp"
#include "inventory/json.hpp"

#include <algorithm>
#include <set>

namespace kubelane::inventory {

bool natural_less(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto take_number = [&](std::string_view& text) {
    std::size_t size = 0;
    while (size < text.size() && is_digit(text[size])) ++size;
    auto digits = text.substr(0, size);
    text.remove_prefix(size);
    while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
    return digits;
  };
  const auto whole_a = a, whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto x = take_number(a), y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

namespace {

// A YAML scalar, in quotes unless it is a plain word.
std::string scalar(const std::string& text) {
  static const std::set<std::string> words = {"yes",   "no",   "on", "off", "true",
                                              "false", "null", "y",  "n"};
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  const bool plain =
      !text.empty() && is_letter(text.front()) &&
      std::all_of(text.begin(), text.end(), [&](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
      });
  std::string low;
  for (const char c : text) low += static_cast<char>(c | 0x20);
  return plain && !words.contains(low) ? text : json_text(text);
}

class config_writer {
 public:
  config_writer(const model& of, const cluster& seen, const settings& from, std::string node,
                std::optional<int> own_port)
      : model_(of), seen_(seen), from_(from), node_(std::move(node)), own_port_(own_port) {
    for (const auto* list : {&seen.workers, &seen.control_planes})
      for (const auto& one : *list)
        if (one.name == node_) self_ = &one;
    host_ = self_ != nullptr ? self_->host : !seen.workers.empty() ? seen.workers.front().host : -1;
  }

  boost::system::result<std::string, emit_error> run(const std::vector<std::string>& sources) {
    if (!node_.empty() && self_ == nullptr) {
      refuse(node_ + " is no worker and no control plane of this inventory");
      return error_;
    }
    text_ = "# kubelane's configuration for " + (node_.empty() ? "the workers" : node_) +
            ", written by `kubelane inventory config`\n# from " + join(sources) + "\nversion: 1\n";
    listen();
    admin();
    upstreams();
    zone();
    health();
    text_ += "cluster: {nodes: " + std::to_string(std::max(1, seen_.nodes)) +
             ", etcd: " + (same_hosts() ? "stacked" : "external") +
             "}  # hosts of k8s_cluster; etcd on the control planes or not\n";
    if (!error_.reasons.empty()) return error_;
    return text_;
  }

 private:
  void refuse(std::string reason) { error_.reasons.push_back(std::move(reason)); }

  // quorum is shown for stacked etcd only, and counts API servers: so the hosts have to be the
  // same.
  bool same_hosts() const {
    return seen_.is_stacked && seen_.etcd.size() == seen_.control_planes.size();
  }

  void listen() {
    const auto server = from_.port(host_, "kube_apiserver_port", 6443);
    const auto proxy =
        server ? from_.port(host_, "loadbalancer_apiserver_port", *server) : std::nullopt;
    if (!server || !proxy)
      return refuse("the port is a template or no port; see `kubelane inventory check`");
    collide(own_port_.value_or(*proxy));
    std::vector<int> ports{own_port_.value_or(*proxy)};
    if (!own_port_ && *server != *proxy && !on_control_plane()) ports.push_back(*server);
    std::string list;
    for (const int port : ports)
      for (const char* host : {"127.0.0.1", "::1"})
        list += (list.empty() ? "" : ", ") + json_text(join_port(host, port));
    text_ += "listen: [" + list + "]" + comment(listen_comment(ports.size() > 1)) + "\n";
  }

  bool on_control_plane() const { return self_ != nullptr && self_->is_control_plane; }

  std::string listen_comment(bool two) const {
    if (own_port_) return "as asked for on the command line";
    const auto proxy = from_.get(host_, "loadbalancer_apiserver_port");
    const auto server = from_.get(host_, "kube_apiserver_port");
    std::string first = proxy.is == setting::state::set
                            ? with_place(model_, "loadbalancer_apiserver_port", proxy.at())
                        : server.is == setting::state::set
                            ? with_place(model_, "kube_apiserver_port", server.at())
                            : "kube_apiserver_port's default";
    if (two) first += " for the kubelet, kube_apiserver_port for kube-proxy";
    return first;
  }

  // A control plane's own API server holds its port on every address, unless it was bound to one.
  void collide(int port) {
    if (!on_control_plane()) return;
    const auto bind = from_.text(host_, "kube_apiserver_bind_address", "::");
    const bool holds =
        !bind || *bind == "::" || *bind == "0.0.0.0" || *bind == "127.0.0.1" || *bind == "::1";
    if (holds && self_->port && *self_->port == port)
      refuse("port-conflict: " + node_ + " is a control plane whose API server holds port " +
             std::to_string(port) + ": give kubelane another with --port, or run none there");
  }

  static std::string comment(const std::string& text) { return "  # " + text; }

  void admin() {
    const auto health = from_.port(host_, "loadbalancer_apiserver_healthcheck_port", 8081);
    if (!health) return refuse("loadbalancer_apiserver_healthcheck_port is a template or no port");
    const auto set = from_.get(host_, "loadbalancer_apiserver_healthcheck_port");
    text_ += "admin:\n  listen: " + json_text(join_port("127.0.0.1", *health)) +
             comment(set.is == setting::state::set
                         ? with_place(model_, "loadbalancer_apiserver_healthcheck_port", set.at())
                         : "loadbalancer_apiserver_healthcheck_port's default") +
             "\n";
  }

  void upstreams() {
    auto servers = seen_.control_planes;
    std::sort(servers.begin(), servers.end(),
              [](const node& a, const node& b) { return natural_less(a.name, b.name); });
    if (servers.empty()) return refuse("the group kube_control_plane has no hosts");
    text_ += "upstreams:\n";
    std::set<std::string> known;
    for (const auto& one : servers) upstream(one, known);
  }

  void upstream(const node& one, std::set<std::string>& known) {
    if (one.address.text.empty() || !one.port) return refuse(why_unknown(one));
    const auto target = join_port(one.address.text, *one.port);
    if (!known.insert(target).second)
      return refuse("duplicate-address: two control planes share " + target);
    text_ += "  - {name: " + scalar(one.name) + ", address: " + json_text(target) +
             (one.zone.empty() ? "" : ", zone: " + scalar(one.zone)) + "}" +
             comment(with_place(model_, one.address.from, one.address.at)) + "\n";
  }

  std::string why_unknown(const node& one) const {
    const auto where = model_.describe(model_.hosts[static_cast<std::size_t>(one.host)].at);
    const auto name = (where.empty() ? "" : where + ": ") + one.name;
    if (one.address.from == "facts")
      return name + " has no ip or access_ip: only gathered facts tell its address. Set ip";
    if (one.address.from == "template" || !one.port)
      return name +
             ": a template or an encrypted value decides its address or port; pipe "
             "ansible-inventory --list into `kubelane inventory config -`, or write it out";
    return model_.describe(one.address.at) + ": " + one.address.from + " of " + one.name +
           " is no usable address";
  }

  void zone() {
    const auto set = from_zone();
    if (set == nullptr) return;
    text_ +=
        "zone: " + scalar(set->zone) + comment(with_place(model_, "zone", set->zone_at)) + "\n";
  }

  // The node's own, or the one that all workers share.
  const node* from_zone() {
    if (self_ != nullptr) return self_->zone.empty() ? nullptr : self_;
    const node* first = seen_.workers.empty() ? nullptr : &seen_.workers.front();
    for (const auto& one : seen_.workers) {
      if (one.zone == first->zone) continue;
      text_ += "# zone: differs between the workers; write each its own with --node or --output\n";
      return nullptr;
    }
    return first == nullptr || first->zone.empty() ? nullptr : first;
  }

  void health() {
    const auto certificates = from_.get(host_, "kube_cert_dir");
    if (certificates.is == setting::state::set)
      text_ += "health:\n  tls:\n    ca_file: " +
               json_text(scalar_text(*certificates.content) + "/ca.crt") +
               comment(with_place(model_, "kube_cert_dir", certificates.at())) + "\n";
    const auto anonymous = from_.get(host_, "kube_api_anonymous_auth");
    if (anonymous.is == setting::state::set && !is_true(*anonymous.content))
      text_ += "# " + with_place(model_, "kube_api_anonymous_auth", anonymous.at()) +
               " is off: probes get 401 (alive, readiness unknown) until\n"
               "# health.tls.client_cert_file and client_key_file name a client certificate\n";
  }

  const model& model_;
  const cluster& seen_;
  const settings& from_;
  std::string node_;
  std::optional<int> own_port_;
  const node* self_ = nullptr;
  int host_ = -1;
  std::string text_;
  emit_error error_;
};

}  // namespace

boost::system::result<std::string, emit_error> emit_config(
    const model& of, const cluster& seen, const settings& from, const std::string& node,
    std::optional<int> own_port, const std::vector<std::string>& sources) {
  return config_writer(of, seen, from, node, own_port).run(sources);
}

}  // namespace kubelane::inventory
