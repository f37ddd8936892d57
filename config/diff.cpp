#include "config/diff.hpp"

#include <utility>

namespace kubelane::config {
namespace {

struct setting {
  std::string path;
  std::string value;
};
using settings = std::vector<setting>;

std::string shown(const std::string& text) {
  return quote(text);
}
std::string shown(int number) {
  return std::to_string(number);
}
std::string shown(milliseconds duration) {
  return to_string(duration);
}
std::string shown(const net::endpoint& at) {
  return net::to_string(at);
}
std::string shown(const std::optional<milliseconds>& interval) {
  return interval ? to_string(*interval) : "auto";
}
template <typename Item>
std::string shown(const std::vector<Item>& all) {
  std::string result = "[";
  for (const auto& each : all) result += (result.size() > 1 ? ", " : "") + net::to_string(each);
  return result + "]";
}
template <typename Enum>
requires std::is_enum_v<Enum> std::string shown(Enum value) {
  return std::string(to_string(value));
}

settings listeners_of(const config& of) {
  return {{"listen", shown(of.listen)},
          {"admin.listen", shown(of.admin_listen)},
          {"metrics.listen", shown(of.metrics_listen)}};
}

settings health_of(const struct health& of) {
  return {{"health.mode", shown(of.mode)},
          {"health.path", shown(of.path)},
          {"health.interval", shown(of.interval)},
          {"health.timeout", shown(of.timeout)},
          {"health.fall", shown(of.fall)},
          {"health.rise", shown(of.rise)},
          {"health.slow_start", shown(of.slow_start)},
          {"health.hold_down", shown(of.hold_down)},
          {"health.tls.verify", shown(of.tls.verify)},
          {"health.tls.ca_file", shown(of.tls.ca_file)},
          {"health.tls.server_name", shown(of.tls.server_name)},
          {"health.tls.client_cert_file", shown(of.tls.client_cert_file)},
          {"health.tls.client_key_file", shown(of.tls.client_key_file)},
          {"health.tls.kubeconfig", shown(of.tls.kubeconfig)}};
}

settings others_of(const config& of) {
  return {{"metrics.allow", shown(of.metrics_allow)},
          {"zone", shown(of.zone)},
          {"balance", shown(of.balance)},
          {"dial.attempt_timeout", shown(of.dial.attempt_timeout)},
          {"dial.hedge_after", shown(of.dial.hedge_after)},
          {"dial.first_answer", shown(of.dial.first_answer)},
          {"dial.total_timeout", shown(of.dial.total_timeout)},
          {"failover.mode", shown(of.failover.mode)},
          {"failover.suspect_after", shown(of.failover.suspect_after)},
          {"failover.reset_after", shown(of.failover.reset_after)},
          {"drain.etcd", shown(of.drain.etcd)},
          {"drain.shutdown", shown(of.drain.shutdown)},
          {"drain.other", shown(of.drain.other)},
          {"drain.removed", shown(of.drain.removed)},
          {"drain.busy", shown(of.drain.busy)},
          {"relay.half_closed_timeout", shown(of.relay.half_closed_timeout)},
          {"cluster.nodes", shown(of.cluster.nodes)},
          {"cluster.etcd", shown(of.cluster.etcd)},
          {"limits.connections", shown(of.limits.connections)},
          {"log.level", shown(of.log.level)},
          {"log.format", shown(of.log.format)}};
}

/// Both list the same paths in the same order.
void compare(const settings& from, const settings& to, std::vector<std::string>& out) {
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i].value != to[i].value)
      out.push_back(to[i].path + ": " + from[i].value + " -> " + to[i].value);
}

using by_address = std::map<net::host_port, const upstream*>;

by_address index(const std::vector<upstream>& all) {
  by_address result;
  for (const auto& each : all) result.emplace(each.address, &each);
  return result;
}

void compare_upstreams(const config& from, const config& to, changes& out) {
  const auto before = index(from.upstreams);
  const auto after = index(to.upstreams);
  for (const auto& each : to.upstreams) {
    const auto found = before.find(each.address);
    if (found == before.end()) {
      out.added.push_back(each);
      continue;
    }
    const auto path = "upstream " + net::to_string(each.address);
    compare({{path + " name", shown(found->second->name)},
             {path + " zone", shown(found->second->zone)}},
            {{path + " name", shown(each.name)}, {path + " zone", shown(each.zone)}}, out.live);
    out.kept.push_back(each);
  }
  for (const auto& each : from.upstreams)
    if (!after.contains(each.address)) out.removed.push_back(each);
}

}  // namespace

bool changes::empty() const {
  return added.empty() && removed.empty() && live.empty() && restart.empty();
}

changes diff(const config& from, const config& to) {
  changes result;
  compare_upstreams(from, to, result);
  compare(health_of(from.health), health_of(to.health), result.live);
  compare(others_of(from), others_of(to), result.live);
  compare(listeners_of(from), listeners_of(to), result.restart);
  return result;
}

config keep_listeners(const config& running, config next) {
  next.listen = running.listen;
  next.admin_listen = running.admin_listen;
  next.metrics_listen = running.metrics_listen;
  return next;
}

}  // namespace kubelane::config
