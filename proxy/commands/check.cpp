#include "config/load.hpp"
#include "net/host_addresses.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/probe_all.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

constexpr int bad_config = 2;

struct check_options {
  std::string path;
  bool probe = false;
};

int check(const check_options& options) {
  const auto loaded = config::load_file(options.path, net::host_addresses());
  const auto print = [&](const std::vector<config::problem>& list, config::severity how) {
    for (const auto& one : list) std::cerr << config::describe(options.path, one, how) << '\n';
  };
  if (!loaded) {
    print(loaded.error().list, config::severity::error);
    print(loaded.error().warnings, config::severity::warning);
    return bad_config;
  }
  print(loaded->warnings, config::severity::warning);
  std::cout << options.path << ": good, " << loaded->settings.upstreams.size() << " upstreams\n";
  return options.probe ? probe_all(loaded->settings, std::cout) : 0;
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
