// `kubelane demo`: the main job, with faults, on one machine and without privileges. Every part is
// a process of its own, so that a kill is a kill and a freeze is a SIGSTOP.

#include "demo/served.hpp"
#include "demo/show.hpp"
#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

struct demo_options {
  demo::served_options served;  // of the child that plays an API server
};

int run_demo(const demo_options& options) {
  try {
    if (!options.served.name.empty()) return demo::serve(options.served);
    return demo::show(std::cout,
                      ::isatty(STDOUT_FILENO) == 1 ? demo::screen::terminal : demo::screen::plain);
  } catch (const std::exception& error) {
    std::cerr << "the demo cannot go on: " << error.what() << '\n';
    return 1;
  }
}

}  // namespace

void add_demo(CLI::App& app, int& status) {
  auto options = std::make_shared<demo_options>();
  auto* command = app.add_subcommand(
      "demo", "three API servers, the proxy, clients of a node; faults in turn; a verdict");
  // Not for people: how the demo starts its own API servers.
  command->add_option("--serve", options->served.name)->group("");
  command->add_option("--port", options->served.port)->group("");
  command->add_option("--directory", options->served.directory)->group("");
  command->footer("Takes about a minute. Exit status: 0 if no request was lost, else 1.");
  command->callback([options, &status] { status = run_demo(*options); });
}

}  // namespace kubelane::commands
