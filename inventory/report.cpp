#include "inventory/report.hpp"

#include "inventory/json.hpp"

#include <algorithm>

namespace kubelane::inventory {
namespace {

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::vector<std::string> names(const std::vector<node>& nodes) {
  std::vector<std::string> result;
  for (const auto& one : nodes) result.push_back(one.name);
  return result;
}

std::string truth(bool is) {
  return is ? "true" : "false";
}

std::string findings_json(const model& in, const verdict& what) {
  std::string result;
  for (const auto& one : what.findings) {
    result += result.empty() ? "\n" : ",\n";
    result += "    {\"rule\": " + json_text(one.rule) +
              ", \"severity\": " + json_text(to_string(one.how)) +
              ", \"host\": " + (one.host.empty() ? "null" : json_text(one.host)) +
              ", \"at\": " + json_text(in.describe(one.at)) +
              ", \"message\": " + json_text(one.message) + "}";
  }
  return "[" + result + (result.empty() ? "]" : "\n  ]");
}

std::string etcd_json(const verdict& what) {
  const auto& etcd = what.etcd;
  std::string domains;
  for (const auto& one : etcd.domains) {
    domains += domains.empty() ? "" : ", ";
    domains += "{\"name\": " + json_text(one.name) + ", \"members\": " + json_list(one.members) +
               ", \"survives\": " + truth(one.survives) + "}";
  }
  std::string result = "{\"members\": " + json_list(names(what.seen.etcd)) +
                       ", \"majority\": " + std::to_string(etcd.majority) +
                       ", \"tolerated\": " + std::to_string(etcd.tolerated) + ", \"topology\": " +
                       (what.seen.is_stacked ? "\"stacked\"" : "\"external\"") +
                       ", \"domains\": [" + domains + "]";
  if (what.has_failed)
    result += ", \"failed\": " + json_list(etcd.failed) + ", \"held\": " + truth(etcd.held) +
              ", \"spare\": " + std::to_string(etcd.spare);
  return result + "}";
}

std::string control_planes_json(const cluster& seen) {
  std::string result;
  for (const auto& one : seen.control_planes) {
    result += result.empty() ? "\n" : ",\n";
    result += "    {\"host\": " + json_text(one.name) + ", \"address\": " +
              (one.address.text.empty() ? "null" : json_text(one.address.text)) +
              ", \"port\": " + (one.port ? std::to_string(*one.port) : "null") +
              ", \"from\": " + json_text(one.address.from) + "}";
  }
  return "[" + result + (result.empty() ? "]" : "\n  ]");
}

std::string count(std::size_t number, const char* of) {
  return std::to_string(number) + " " + of + (number == 1 ? "" : "s");
}

std::string address_line(const model& in, const node& one) {
  std::string text = "  " + one.name + "  ";
  if (one.address.text.empty()) {
    if (one.address.from == "facts") return text + "address from facts only\n";
    if (one.address.from == "template")
      return text + "address from a template: " + in.describe(one.address.at) + "\n";
    return text + "no usable address\n";
  }
  text += join_port(one.address.text, one.port.value_or(6443));
  return text + "  " + with_place(in, one.address.from, one.address.at) + "\n";
}

std::string etcd_text(const verdict& what) {
  const auto& etcd = what.etcd;
  const auto members = what.seen.etcd.size();
  std::string text = "etcd: " + count(members, "member") + " (" + join(names(what.seen.etcd)) +
                     "), majority " + std::to_string(etcd.majority) + ", tolerates " +
                     std::to_string(etcd.tolerated);
  text += what.seen.is_stacked
              ? "; stacked: a lost control plane is a lost member"
              : "; external: a lost member is not always a lost API server, and the reverse";
  if (what.has_failed)
    text += "\n  without " + (etcd.failed.empty() ? "any member lost" : join(etcd.failed)) + ": " +
            (etcd.held ? "held, " + std::to_string(etcd.spare) + " to spare" : "lost");
  for (const auto& one : etcd.domains)
    text += "\n  " + one.name + " (" + join(one.members) + "): its loss " +
            (one.survives ? "is survived" : "stops writes");
  return text + "\n";
}

std::string access_text(const verdict& what) {
  const auto& access = what.seen.access;
  std::string text =
      "workers: " + std::to_string(what.seen.workers.size()) + ", which reach the API ";
  switch (access.is) {
    case api_access::kind::localhost:
      text += "through the proxy on each";
      break;
    case api_access::kind::external:
      text += "through an external load balancer";
      break;
    case api_access::kind::first_control_plane:
      text += "on the first control plane alone";
      break;
    case api_access::kind::unknown:
      return text + "in a way this inventory does not tell\n";
  }
  return text + " (kubelet: " + access.kubelet + ", kube-proxy: " + access.kube_proxy + ")\n";
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
  return {};
}

std::string json_list(const std::vector<std::string>& names) {
  std::string result;
  for (const auto& name : names) result += (result.empty() ? "" : ", ") + json_text(name);
  return "[" + result + "]";
}

bool is_refused(const verdict& what, const std::vector<std::string>& accepted) {
  return std::any_of(what.findings.begin(), what.findings.end(), [&](const finding& one) {
    return one.how == severity::error && !contains(accepted, one.rule);
  });
}

std::string report_json(const model& in, const verdict& what) {
  const auto& access = what.seen.access;
  return "{\n  \"findings\": " + findings_json(in, what) + ",\n  \"etcd\": " + etcd_json(what) +
         ",\n  \"control_planes\": " + control_planes_json(what.seen) +
         ",\n  \"workers\": " + json_list(names(what.seen.workers)) +
         ",\n  \"access\": {\"kind\": " + json_text(to_string(access.is)) +
         ", \"kubelet\": " + json_text(access.kubelet) +
         ", \"kube_proxy\": " + json_text(access.kube_proxy) + "}\n}\n";
}

std::string report_text(const model& in, const verdict& what,
                        const std::vector<std::string>& accepted) {
  const auto& seen = what.seen;
  std::string text = etcd_text(what);
  text += count(seen.control_planes.size(), "control plane");
  if (!seen.control_planes.empty())
    text += "; first: " + seen.control_planes.front().name + ", to which playbooks delegate";
  text += "\n";
  for (const auto& one : seen.control_planes) text += address_line(in, one);
  text += access_text(what);
  if (!what.proxy_type_note.empty()) text += what.proxy_type_note + "\n";
  for (const auto& one : what.findings) {
    const auto at = in.describe(one.at);
    text += (at.empty() ? "" : at + ": ") + std::string(to_string(one.how)) +
            (contains(accepted, one.rule) ? " (accepted)" : "") + ": " + one.rule + ": " +
            one.message + "\n";
  }
  return text;
}

}  // namespace kubelane::inventory
