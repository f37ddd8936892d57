#include "proxy/commands/check_node.hpp"

#include "config/load.hpp"
#include "inventory/json.hpp"
#include "net/host_addresses.hpp"
#include "node/gather.hpp"
#include "node/proc.hpp"
#include "node/rules.hpp"
#include "proxy/commands/load.hpp"
#include "proxy/commands/probe_all.hpp"
#include "proxy/commands/text_table.hpp"

#include <algorithm>
#include <ostream>

namespace kubelane::commands {
namespace {

using inventory::json_text;

std::string problems_in_words(const config::problems& what) {
  std::string words;
  for (const auto& one : what.list)
    words += (words.empty() ? "" : "; ") + std::to_string(std::max(1, one.at.line)) + ":" +
             std::to_string(std::max(1, one.at.column)) + ": " + one.path + ": " + one.message;
  return words;
}

void add_answers(const probe_results& results, node::facts& to) {
  for (const auto& one : results.servers) {
    if (one.expiry)
      to.certificates.push_back({one.name, "its serving certificate", {}, *one.expiry});
    if (const auto date = node::parse_date(one.date))
      to.servers.push_back(
          {one.name, std::chrono::duration_cast<std::chrono::seconds>(*date - one.heard)});
  }
}

void print_text(const std::vector<node::finding>& findings, std::ostream& out) {
  for (const auto& one : findings)
    out << printable(one.at) << ": " << to_string(one.how) << ": " << one.rule << ": "
        << printable(one.message) << '\n';
}

std::string to_json(const std::vector<node::finding>& findings, const probe_results& results) {
  std::string list, servers;
  for (const auto& one : findings)
    list += (list.empty() ? "\n" : ",\n") + std::string("    {\"rule\": ") + json_text(one.rule) +
            ", \"severity\": " + json_text(to_string(one.how)) + ", \"at\": " + json_text(one.at) +
            ", \"message\": " + json_text(one.message) + "}";
  for (const auto& one : results.servers)
    servers += (servers.empty() ? "\n" : ",\n") + std::string("    {\"name\": ") +
               json_text(one.name) + ", \"verdict\": " + json_text(one.verdict) + "}";
  return "{\n  \"findings\": [" + list + (list.empty() ? "]" : "\n  ]") + ",\n  \"servers\": [" +
         servers + (servers.empty() ? "]" : "\n  ]") + "\n}\n";
}

}  // namespace

int check_node(const node_options& options, std::ostream& out) {
  const auto path =
      options.config_path.empty() ? options.root + packaged_config : options.config_path;
  const auto loaded = config::load_file(path, net::host_addresses());
  auto facts = node::gather(options.root, loaded ? loaded->settings : config::config());
  facts.config_path = path;
  if (!loaded) facts.config_problem = problems_in_words(loaded.error());
  probe_results results;
  if (options.probe && loaded) results = probe_all(loaded->settings);
  add_answers(results, facts);
  const auto findings = node::examine(facts);
  const bool is_json = options.format == "json";
  if (is_json)
    out << to_json(findings, results);
  else
    print_text(findings, out);
  const int probed = is_json ? (results.all_good() ? 0 : probe_failed) : print(results, out);
  const auto is_error = [](const auto& one) { return one.how == node::severity::error; };
  const auto errors = std::count_if(findings.begin(), findings.end(), is_error);
  if (!is_json)
    out << "this node: "
        << (findings.empty()
                ? std::string("good")
                : std::to_string(errors) + " errors, " +
                      std::to_string(findings.size() - static_cast<std::size_t>(errors)) +
                      " other findings")
        << '\n';
  return errors > 0 ? bad_config : probed;
}

}  // namespace kubelane::commands
