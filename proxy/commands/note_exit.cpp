#include "proxy/commands/commands.hpp"
#include "systemd/crash_count.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>
#include <string>

namespace kubelane::commands {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int note_exit() {
  if (!systemd::crash_count::is_crash(environment("SERVICE_RESULT"), environment("EXIT_STATUS")))
    return 0;
  const auto folder = environment("STATE_DIRECTORY");
  if (folder.empty()) {
    std::cerr << "note-exit: STATE_DIRECTORY is not set; systemd sets it for ExecStopPost=\n";
    return 1;
  }
  const auto failure = systemd::crash_count::note(folder);
  if (failure) std::cerr << "note-exit: " << *failure << '\n';
  return failure ? 1 : 0;
}

}  // namespace

void add_note_exit(CLI::App& app, int& status) {
  auto* command = app.add_subcommand("note-exit", "for systemd: counts a crash of the service");
  command->group("");  // hidden: nobody types it
  command->callback([&status] { status = note_exit(); });
}

}  // namespace kubelane::commands
