#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <exception>
#include <functional>
#include <iostream>
#include <string>

namespace {

/// The library asks for a command, and does not say that the word that was given is none.
std::string explain(const CLI::App* app, const CLI::Error& error) {
  auto text = CLI::FailureMessage::simple(app, error);
  const auto unknown = app->remaining(true);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) && !unknown.empty())
    text = "`" + unknown.front() + "` is not known here. " + text;
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kubelane::commands;
  CLI::App app("kubelane: a node-local load balancer for the Kubernetes API", "kubelane");
  app.set_version_flag("--version", "kubelane " KUBELANE_VERSION);
  app.require_subcommand(1);
  app.failure_message(explain);
  int status = 0;
  std::function<int()> serve;
  add_run(app, serve);
  add_check(app, status);
  add_status(app, status);
  add_events(app, status);
  add_demo(app, status);
  add_quorum(app, status);
  add_inventory(app, status);
  add_etcd(app, status);
  add_note_exit(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : usage_error;
  } catch (const std::exception& error) {
    std::cerr << "kubelane: " << error.what() << '\n';
    return 1;
  }
  // Out of reach of the catch above: what it cannot foresee ends `run` as a crash, which closes no
  // connection in order, so that the next process gets them.
  return serve ? serve() : status;
}
