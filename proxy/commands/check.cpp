#include "proxy/commands/commands.hpp"
#include "proxy/commands/load.hpp"
#include "proxy/commands/probe_all.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

struct check_options {
  std::string path;
  bool probe = false;
};

int check(const check_options& options) {
  const auto loaded = load_and_explain(options.path);
  if (!loaded) return bad_config;
  const auto& settings = loaded->settings;
  std::cout << options.path << ": good, " << settings.upstreams.size() << " upstreams\n";
  return options.probe ? probe_all(settings, std::cout) : 0;
}

}  // namespace

void add_check(CLI::App& app, int& status) {
  auto options = std::make_shared<check_options>();
  auto* command = app.add_subcommand("check", "validate a configuration; every problem is named");
  command->add_option("--config", options->path, "the configuration file")->required();
  command->add_flag("--probe", options->probe, "also ask every API server once");
  command->footer("Exit status: 0 good, 2 bad configuration, 3 a probe failed.");
  command->callback([options, &status] { status = check(*options); });
}

}  // namespace kubelane::commands
