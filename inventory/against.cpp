#include "inventory/against.hpp"

#include <algorithm>
#include <map>

namespace kubelane::inventory {

void check_against(const config::config& running, const std::string& file, model& in,
                   const cluster& seen, std::vector<finding>& findings) {
  const int index = in.add_file(file);
  std::map<std::string, const config::upstream*> there;
  for (const auto& one : running.upstreams) there[net::to_string(one.address)] = &one;
  for (const auto& one : seen.control_planes) {
    if (one.address.text.empty() || !one.port) continue;
    const auto target = join_port(one.address.text, *one.port);
    if (there.erase(target) != 0) continue;
    findings.push_back({"config-differs",
                        severity::error,
                        one.name,
                        {index, 0},
                        "lacks " + target + ", the control plane " + one.name + " (" +
                            with_place(in, one.address.from, one.address.at) + ")"});
  }
  for (const auto& [target, one] : there)
    findings.push_back({"config-differs",
                        severity::error,
                        "",
                        {index, one->at.line},
                        "has " + target + (one->name == target ? "" : " (" + one->name + ")") +
                            ", which is no control plane of the inventory"});
}

}  // namespace kubelane::inventory
