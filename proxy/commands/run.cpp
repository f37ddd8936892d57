#include "proxy/commands/commands.hpp"
#include "proxy/commands/load.hpp"
#include "proxy/server.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <map>
#include <memory>
#include <optional>

namespace kubelane::commands {
namespace {

constexpr int cannot_run = 1;

const std::map<std::string, telemetry::log_level> levels = {{"trace", telemetry::log_level::trace},
                                                            {"debug", telemetry::log_level::debug},
                                                            {"info", telemetry::log_level::info},
                                                            {"warn", telemetry::log_level::warn},
                                                            {"error", telemetry::log_level::error}};

struct run_options {
  std::string path;
  std::string level;
};

int run(const run_options& options) {
  config::file_watch watch({options.path});
  auto settings = load_and_explain(options.path);
  if (!settings) return bad_config;
  proxy::server_options server_options{options.path, std::move(watch), std::nullopt};
  if (!options.level.empty()) server_options.level = levels.at(options.level);
  const auto& log_settings = settings->log;
  telemetry::log log(server_options.level.value_or(proxy::level_of(log_settings.level)),
                     proxy::format_of(log_settings.format));
  proxy::server server(std::move(*settings), std::move(server_options), log);
  if (const auto failure = server.open()) {
    log.error(*failure);
    return cannot_run;
  }
  server.run();
  return 0;
}

}  // namespace

void add_run(CLI::App& app, int& status) {
  auto options = std::make_shared<run_options>();
  auto* command = app.add_subcommand("run", "serve until SIGTERM; SIGHUP reloads");
  command->add_option("--config", options->path, "the configuration file")->required();
  command->add_option("--log-level", options->level, "instead of the configuration's log.level")
      ->check(CLI::IsMember(levels));
  command->footer("Exit status: 0 clean, 1 cannot run, 2 bad configuration.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace kubelane::commands
