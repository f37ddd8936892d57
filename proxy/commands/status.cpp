#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/status_table.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>

namespace kubelane::commands {
namespace {

using namespace std::chrono_literals;

constexpr int not_ready = 1;
constexpr int no_answer = 2;
constexpr std::uint16_t admin_port = 8081;

struct status_options {
  std::string admin = "127.0.0.1:8081";
  bool json = false;
  bool watch = false;
};

bool colours() {
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

/// Prints one answer; the exit status that goes with it.
int show(const status_options& options, const net::endpoint& admin) {
  const auto answer = ask_admin(admin, "/status", 5s);
  if (!answer) {
    std::cerr << "no answer from " << net::to_string(admin) << ": " << answer.error() << '\n';
    return no_answer;
  }
  try {
    const auto document = boost::json::parse(answer->body);
    const bool ready = document.at("ready").as_bool();
    std::cout << (options.json ? answer->body
                               : status_table(answer->body, colours() ? colour::on : colour::off))
              << std::flush;
    return ready ? 0 : not_ready;
  } catch (const std::exception&) {
    std::cerr << net::to_string(admin) << " answers, but not as kubelane does\n";
    return no_answer;
  }
}

int watch(const status_options& options, const net::endpoint& admin) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  int status = 0;
  while (std::cout) {
    if (terminal) std::cout << "\x1b[H\x1b[2J";
    status = show(options, admin);
    std::this_thread::sleep_for(1s);
  }
  return status;
}

int run(const status_options& options) {
  const auto admin = net::parse_endpoint(options.admin, admin_port);
  if (!admin) {
    std::cerr << "--admin " << options.admin << ": not an address, as 127.0.0.1:8081\n";
    return usage_error;
  }
  return options.watch ? watch(options, *admin) : show(options, *admin);
}

}  // namespace

void add_status(CLI::App& app, int& status) {
  auto options = std::make_shared<status_options>();
  auto* command = app.add_subcommand("status", "show what a running kubelane sees");
  command->add_option("--admin", options->admin, "its admin address")->capture_default_str();
  command->add_flag("--json", options->json, "print the JSON of /status");
  command->add_flag("--watch", options->watch, "again every second, until interrupted");
  command->footer("Exit status: 0 ready, 1 not ready, 2 no answer.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace kubelane::commands
