#include "config/last_good.hpp"
#include "config/load.hpp"
#include "net/host_addresses.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/load.hpp"
#include "proxy/server.hpp"
#include "systemd/crash_count.hpp"
#include "systemd/notify.hpp"
#include "systemd/passed.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <thread>

namespace kubelane::commands {
namespace {

constexpr int cannot_run = 1;
// Between two attempts of a service manager that restarts at once.
constexpr std::chrono::milliseconds pause_before_failing{500};
constexpr std::chrono::milliseconds flush_limit{50};  // clients wait for the next process

const std::map<std::string, telemetry::log_level> levels = {{"trace", telemetry::log_level::trace},
                                                            {"debug", telemetry::log_level::debug},
                                                            {"info", telemetry::log_level::info},
                                                            {"warn", telemetry::log_level::warn},
                                                            {"error", telemetry::log_level::error}};

struct run_options {
  std::string path;
  std::string level;
  bool wait_for_port = false;
};

/// $STATE_DIRECTORY; the first, if there are several. Source: systemd.exec(5).
std::string state_folder() {
  const char* const text = std::getenv("STATE_DIRECTORY");
  const std::string all = text == nullptr ? "" : text;
  return all.substr(0, all.find(':'));
}

/// The configuration, or the last good one, without a text. Nothing if there is neither.
std::optional<config::loaded> choose(const std::string& path, const std::string& folder) {
  if (auto loaded = load_and_explain(path)) return loaded;
  if (folder.empty()) return std::nullopt;
  const auto copy = config::last_good_path(folder);
  auto loaded = config::load_file(copy, net::host_addresses());
  if (!loaded) return std::nullopt;
  std::cerr << path << ": cannot be used; running on the last good configuration, " << copy << '\n';
  loaded->text.clear();
  return std::move(*loaded);
}

/// What one of the connections carries may be the reason.
bool has_crashed_too_often(const std::string& folder) {
  namespace crashes = systemd::crash_count;
  return !folder.empty() && crashes::too_many(crashes::read(folder), crashes::now());
}

/// Nobody is left waiting for a process that does not come.
int fail(int status, proxy::inheritance from_before, const systemd::notifier& manager) {
  proxy::release_all(std::move(from_before), manager);
  if (manager.present()) std::this_thread::sleep_for(pause_before_failing);
  return status;
}

int run(const run_options& options) {
  const systemd::notifier manager;
  auto from_before = proxy::sort_out(systemd::take_passed_descriptors());
  const auto folder = state_folder();
  const bool gave_up = has_crashed_too_often(folder) && !from_before.connections.empty();
  if (gave_up) {
    proxy::give_up_connections(from_before);
    systemd::crash_count::forget(folder);  // they were the reason, or it will be counted anew
  }
  config::file_watch watch({options.path});
  proxy::server_options server_options{.config_path = options.path,
                                       .watch = std::move(watch),
                                       .level = std::nullopt,
                                       .state_folder = folder,
                                       .text = {},
                                       .wait_for_port = options.wait_for_port};
  auto found = choose(options.path, folder);
  if (!found) return fail(bad_config, std::move(from_before), manager);
  if (!options.level.empty()) server_options.level = levels.at(options.level);
  server_options.text = std::move(found->text);
  auto& settings = found->settings;
  auto log = std::make_unique<telemetry::log>(
      server_options.level.value_or(proxy::level_of(settings.log.level)),
      proxy::format_of(settings.log.format));
  proxy::server server(std::move(settings), std::move(server_options), manager, *log);
  if (gave_up)
    log->warn("crashed too often lately: starting without the connections of the process before");
  if (const auto failure = server.open(std::move(from_before))) {
    log->error(*failure);
    return fail(cannot_run, {}, manager);  // it has ended what there was
  }
  if (server.run() == proxy::server::outcome::stopped) return 0;
  log->flush(flush_limit);
  ::_exit(0);  // what would be closed in order belongs to the next process now
}

}  // namespace

void add_run(CLI::App& app, std::function<int()>& serve) {
  auto options = std::make_shared<run_options>();
  auto* command = app.add_subcommand("run", "serve until SIGTERM; SIGHUP reloads");
  command->add_option("--config", options->path, "the configuration file")->required();
  command->add_option("--log-level", options->level, "instead of the configuration's log.level")
      ->check(CLI::IsMember(levels));
  command->add_flag(
      "--wait-for-port", options->wait_for_port,
      "wait for a port that another process holds, and take it the moment it is free");
  command->footer("Exit status: 0 clean, 1 cannot run, 2 bad configuration.");
  command->callback([options, &serve] { serve = [options] { return run(*options); }; });
}

}  // namespace kubelane::commands
