#include "config/load.hpp"
#include "inventory/against.hpp"
#include "inventory/checks.hpp"
#include "inventory/emit.hpp"
#include "inventory/listing.hpp"
#include "inventory/plan.hpp"
#include "inventory/report.hpp"
#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::commands {
namespace {

namespace fs = std::filesystem;
using inventory::names;

constexpr int bad_inventory = 2;
constexpr const char* sources_help =
    "what ansible-playbook -i takes: files, directories, lists with a comma; - reads the JSON of "
    "ansible-inventory --list";

void print(const inventory::model& in, const std::vector<inventory::finding>& findings) {
  for (const auto& one : findings) {
    const auto at = in.describe(one.at);
    std::cerr << (at.empty() ? "" : at + ": ") << to_string(one.how) << ": " << one.rule << ": "
              << one.message << '\n';
  }
}

// Names that no host has.
names unknown_hosts(const inventory::model& in, const names& given) {
  names result;
  for (const auto& name : given)
    if (!in.find_host(name)) result.push_back(name);
  return result;
}

int no_such_host(const names& which) {
  std::cerr << "kubelane inventory: no host " << inventory::join(which) << " in the inventory\n";
  return usage_error;
}

struct check_options {
  names sources;
  std::string format = "text";
  names accepted;
  std::string against;
  inventory::check_options how;
};

int check(const check_options& options) {
  auto reading = inventory::read(options.sources, std::cin);
  auto wanted = options.how.failed;
  if (!options.how.node.empty()) wanted.push_back(options.how.node);
  auto result = inventory::check(reading, options.how);
  if (const auto unknown = unknown_hosts(reading.inventory, wanted);
      !unknown.empty() && reading.refused.empty())
    return no_such_host(unknown);
  if (!options.against.empty()) {
    const auto running = config::load_file(options.against);
    if (!running) {
      for (const auto& one : running.error().list)
        std::cerr << config::describe(options.against, one, config::severity::error) << '\n';
      return bad_inventory;
    }
    check_against(running->settings, options.against, reading.inventory, result.seen,
                  result.findings);
  }
  std::cout << (options.format == "json"
                    ? report_json(reading.inventory, result)
                    : report_text(reading.inventory, result, options.accepted));
  return is_refused(result, options.accepted) ? bad_inventory : 0;
}

struct config_options {
  names sources;
  std::string node;
  std::string output;
  int port = 0;
};

// Findings with which no list of upstreams can be trusted.
std::vector<inventory::finding> blocking(const inventory::verdict& of) {
  std::vector<inventory::finding> result;
  for (const auto& one : of.findings)
    if (one.how == inventory::severity::error &&
        (one.rule == "unreadable" || one.rule == "unknown-group" ||
         one.rule == "duplicate-address"))
      result.push_back(one);
  return result;
}

class config_command {
 public:
  explicit config_command(const config_options& options)
      : options_(options),
        reading_(inventory::read(options.sources, std::cin)),
        verdict_(inventory::check(reading_, {})) {}

  int run() {
    if (const auto stop = blocking(verdict_); !stop.empty()) {
      print(reading_.inventory, stop);
      return bad_inventory;
    }
    if (options_.output.empty()) {
      const auto text = emit(options_.node);
      if (text) std::cout << *text;
      return text ? 0 : bad_inventory;
    }
    return write_all();
  }

 private:
  std::optional<std::string> emit(const std::string& node) {
    std::vector<inventory::finding> ignored;
    const inventory::settings values(reading_.inventory, ignored);
    const auto port = options_.port == 0 ? std::nullopt : std::optional(options_.port);
    const auto result =
        emit_config(reading_.inventory, verdict_.seen, values, node, port, options_.sources);
    if (result) return *result;
    for (const auto& reason : result.error().reasons) std::cerr << "kubelane: " << reason << '\n';
    return std::nullopt;
  }

  int write_all() {
    names nodes;
    for (const auto& one : verdict_.seen.workers) nodes.push_back(one.name);
    if (!options_.node.empty()) nodes = {options_.node};
    std::error_code error;
    fs::create_directories(options_.output, error);
    for (const auto& node : nodes) {
      const auto text = emit(node);
      if (!text) return bad_inventory;
      // A host's name may be a path; here it is one file's name.
      if (node.find('/') != std::string::npos) return cannot_write(node);
      const auto path = (fs::path(options_.output) / (node + ".yaml")).string();
      std::ofstream file(path, std::ios::binary | std::ios::trunc);
      if (!(file << *text << std::flush)) return cannot_write(path);
      std::cout << path << '\n';
    }
    return 0;
  }

  static int cannot_write(const std::string& path) {
    std::cerr << "kubelane: cannot write " << path << '\n';
    return bad_inventory;
  }

  const config_options& options_;
  inventory::reading reading_;
  inventory::verdict verdict_;
};

struct plan_options {
  std::string before, after;
  std::string format = "text";
  names failed;
};

inventory::plan_end read_end(const std::string& path, const names& failed, names& hosts) {
  auto reading = inventory::read({path}, std::cin);
  inventory::plan_end result{path, inventory::check(reading, {failed, ""}), ""};
  std::vector<inventory::finding> ignored;
  const inventory::settings values(reading.inventory, ignored);
  if (!result.checked.seen.control_planes.empty())
    result.version =
        values.text(result.checked.seen.control_planes.front().host, "kube_version", "")
            .value_or("");
  for (const auto& one : reading.inventory.hosts) hosts.push_back(one.name);
  return result;
}

int plan(const plan_options& options) {
  names hosts;
  const auto before = read_end(options.before, options.failed, hosts);
  const auto after = read_end(options.after, options.failed, hosts);
  if (const auto unknown = inventory::without(options.failed, hosts); !unknown.empty())
    return no_such_host(unknown);
  const auto result = make_plan(before, after, options.failed);
  if (options.format == "json")
    std::cout << plan_json(result);
  else if (options.format == "markdown")
    std::cout << plan_markdown(result, options.before, options.after);
  else
    std::cout << plan_text(result);
  return result.refused ? bad_inventory : 0;
}

int list(const names& sources) {
  const auto reading = inventory::read(sources, std::cin);
  print(reading.inventory, reading.findings);
  std::cout << write_listing(reading.inventory);
  for (const auto& one : reading.findings)
    if (one.how == inventory::severity::error) return bad_inventory;
  return 0;
}

void add_inventory_check(CLI::App& inventory, int& status) {
  auto options = std::make_shared<check_options>();
  auto* command = inventory.add_subcommand(
      "check", "what kubespray refuses, what etcd does not survive, what undoes kubelane");
  command->add_option("PATH", options->sources, sources_help)->required();
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("--accept", options->accepted, "rules whose findings are no failure")
      ->delimiter(',')
      ->check(CLI::IsMember(kubelane::inventory::rule_names()))
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--failed", options->how.failed, "hosts to count as lost")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--node", options->how.node, "host on which kubelane is to run too");
  command->add_option("--against", options->against,
                      "a kubelane configuration: which upstreams it lacks or has too many");
  command->footer("Exit status: 0 good, 2 an error that was not accepted.");
  command->callback([options, &status] { status = check(*options); });
}

void add_inventory_config(CLI::App& inventory, int& status) {
  auto options = std::make_shared<config_options>();
  auto* command = inventory.add_subcommand(
      "config", "kubelane's configuration for the workers of an inventory");
  command->add_option("PATH", options->sources, sources_help)->required();
  command->add_option("--node", options->node, "for this host, with its zone");
  command->add_option("--output", options->output, "directory: HOST.yaml for each worker");
  command->add_option("--port", options->port, "listen here instead, as on a control plane")
      ->check(CLI::Range(1, 65535));
  command->footer("Exit status: 0 written, 2 something in it cannot be known (said on stderr).");
  command->callback([options, &status] { status = config_command(*options).run(); });
}

void add_inventory_plan(CLI::App& inventory, int& status) {
  auto options = std::make_shared<plan_options>();
  auto* command = inventory.add_subcommand(
      "plan", "the ordered runbook from one inventory to the next; refuses what loses quorum");
  command->add_option("OLD", options->before, "the inventory of the cluster as it is")->required();
  command->add_option("NEW", options->after, "the inventory of the cluster as it is to be")
      ->required();
  command->add_option("--format", options->format, "text, json or markdown")
      ->check(CLI::IsMember({"text", "json", "markdown"}));
  command->add_option("--failed", options->failed, "hosts that do not answer")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->footer("Exit status: 0 a plan, 2 a step that must not be done (which, and why).");
  command->callback([options, &status] { status = plan(*options); });
}

void add_inventory_list(CLI::App& inventory, int& status) {
  auto sources = std::make_shared<names>();
  auto* command = inventory.add_subcommand(
      "list", "hosts, groups and variables as read; compare with ansible-inventory --list");
  command->add_option("PATH", *sources, sources_help)->required();
  command->footer("Exit status: 0 read, 2 a source was refused.");
  command->callback([sources, &status] { status = list(*sources); });
}

}  // namespace

void add_inventory(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("inventory", "check, plan and use a kubespray inventory");
  command->require_subcommand(1);
  add_inventory_check(*command, status);
  add_inventory_config(*command, status);
  add_inventory_plan(*command, status);
  add_inventory_list(*command, status);
}

}  // namespace kubelane::commands
