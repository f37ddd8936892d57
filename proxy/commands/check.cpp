#include "proxy/commands/check_node.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/load.hpp"
#include "proxy/commands/probe_all.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

struct check_options {
  bool node = false;
  node_options about;
};

int check(const node_options& options) {
  const auto loaded = load_and_explain(options.config_path);
  if (!loaded) return bad_config;
  const auto& settings = loaded->settings;
  std::cout << options.config_path << ": good, " << settings.upstreams.size() << " upstreams\n";
  return options.probe ? print(probe_all(settings), std::cout) : 0;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto options = std::make_shared<check_options>();
  auto& about = options->about;
  auto* command = app.add_subcommand("check", "validate a configuration; every problem is named");
  command->add_option(
      "--config", about.config_path,
      "the configuration file; with --node " + std::string(packaged_config) + " if not given");
  command->add_flag("--probe", about.probe, "also ask every API server once");
  auto* node = command->add_flag("--node", options->node,
                                 "check this node too: what keeps it from using kubelane");
  command->add_option("--root", about.root, "with --node: the node's files are below this folder")
      ->needs(node);
  command->add_option("--format", about.format, "with --node: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->needs(node);
  command->footer(
      "Exit status: 0 good, 2 bad configuration or an error on the node, 3 a probe failed.");
  command->callback([options, &status] {
    auto& given = options->about;
    if (given.config_path.empty() && !options->node) throw CLI::RequiredError("--config");
    status = options->node ? check_node(given, std::cout) : check(given);
  });
}

}  // namespace kubelane::commands
