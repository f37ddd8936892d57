#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/bundle.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/live_screen.hpp"
#include "proxy/commands/status_table.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <unistd.h>

#include <ctime>
#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

using namespace std::chrono_literals;

constexpr int not_ready = 1;
constexpr int no_answer = 2;
constexpr auto answer_limit = 5s;
constexpr auto watch_period = 1s;
constexpr auto watch_answer_limit = 1s;

struct status_options {
  std::string admin = "127.0.0.1:8081";
  bool json = false;
  bool watch = false;
  std::string bundle;
};

struct seen {
  int status = no_answer;
  std::string text;     ///< what to show; empty: there was no answer
  std::string failure;  ///< why
};

seen look(const status_options& options, const net::endpoint& admin,
          std::chrono::milliseconds limit) {
  const auto answer = ask_admin(admin, "/status", limit);
  const auto where = net::to_string(admin);
  if (!answer) return {no_answer, "", "no answer from " + where + ": " + answer.error()};
  try {
    const bool ready = boost::json::parse(answer->body).at("ready").as_bool();
    return {ready ? 0 : not_ready,
            options.json ? answer->body
                         : status_table(answer->body, wants_colours() ? colour::on : colour::off),
            ""};
  } catch (const std::exception&) {
    return {no_answer, "", where + " answers, but not as kubelane does"};
  }
}

int show(const status_options& options, const net::endpoint& admin) {
  const auto found = look(options, admin, answer_limit);
  if (found.text.empty())
    std::cerr << found.failure << '\n';
  else
    std::cout << found.text << std::flush;
  return found.status;
}

std::string clock_time() {
  const auto now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &parts);
  return text;
}

/// The last answer stays on the screen while there is none.
int watch_on_terminal(const status_options& options, const net::endpoint& admin,
                      const held_signals& signals) {
  live_screen screen;
  std::string table = "no answer yet\n";
  for (;;) {
    const auto found = look(options, admin, watch_answer_limit);
    if (!found.text.empty()) table = found.text;
    const auto news = found.text.empty() ? found.failure + "; what is below was so before"
                                         : "live, Ctrl-C ends it";
    const auto frame = clock_time() + "  " + news + "\n\n" + table;
    screen.draw(frame);
    for (auto signal = signals.wait(watch_period); signal; signal = signals.wait(watch_period)) {
      if (*signal == SIGTSTP)
        screen.suspend();
      else if (*signal != SIGWINCH)
        return found.status;
      screen.draw(frame);
    }
  }
}

int watch_in_lines(const status_options& options, const net::endpoint& admin,
                   const held_signals& signals) {
  for (;;) {
    if (!options.json) std::cout << clock_time() << '\n';
    const int status = show(options, admin);
    if (!options.json) std::cout << '\n' << std::flush;
    if (!std::cout) return status;
    const auto signal = signals.wait(watch_period);
    if (signal && *signal != SIGWINCH) return status;
  }
}

int watch(const status_options& options, const net::endpoint& admin) {
  if (::isatty(STDOUT_FILENO) != 1 || options.json)
    return watch_in_lines(options, admin, {SIGINT, SIGTERM, SIGHUP});
  return watch_on_terminal(options, admin, {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP});
}

int run(const status_options& options) {
  const auto admin = parse_admin(options.admin);
  if (!admin) return usage_error;
  if (!options.bundle.empty()) return write_bundle(options.bundle, *admin);
  return options.watch ? watch(options, *admin) : show(options, *admin);
}

}  // namespace

void add_status(CLI::App& app, int& status) {
  auto options = std::make_shared<status_options>();
  auto* command = app.add_subcommand("status", "show what a running kubelane sees");
  command->add_option("--admin", options->admin, "its admin address")->capture_default_str();
  auto* json = command->add_flag("--json", options->json, "print the JSON of /status");
  auto* watching =
      command->add_flag("--watch", options->watch, "again every second, until interrupted");
  command
      ->add_option("--bundle", options->bundle,
                   "write what a support engineer needs to this .tar.gz instead; no secrets")
      ->excludes(json)
      ->excludes(watching);
  command->footer(
      "Exit status: 0 ready, 1 not ready, 2 no answer; with --bundle: 0 written, 1 not.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace kubelane::commands
