#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace kubelane::commands {

/// Usage errors: sysexits(3)'s EX_USAGE, apart from every code a command gives a meaning.
constexpr int usage_error = 64;

// Each adds its subcommand to `app`; when it is the one chosen, its exit status is in `status`
// after parsing.
void add_check(CLI::App& app, int& status);
void add_demo(CLI::App& app, int& status);
void add_status(CLI::App& app, int& status);
void add_events(CLI::App& app, int& status);
void add_quorum(CLI::App& app, int& status);
void add_inventory(CLI::App& app, int& status);
void add_etcd(CLI::App& app, int& status);
void add_note_exit(CLI::App& app, int& status);

/// `serve` is what is left to do after parsing, if `run` was chosen; it returns the exit status.
void add_run(CLI::App& app, std::function<int()>& serve);

}  // namespace kubelane::commands
