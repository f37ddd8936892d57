#include "config/section.hpp"
#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/commands.hpp"
#include "proxy/commands/events_table.hpp"
#include "proxy/commands/live_screen.hpp"

#include <CLI/CLI.hpp>
#include <boost/json.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>
#include <memory>

namespace kubelane::commands {
namespace {

using namespace std::chrono_literals;
using proxy::state_change;

constexpr int no_answer = 2;
constexpr auto answer_limit = 5s;

struct events_options {
  std::string admin = "127.0.0.1:8081";
  std::string file = proxy::events_path("/var/lib/kubelane");
  std::string since;
  std::string upstream;
  bool json = false;
};

using history = std::deque<state_change>;

/// Of a running kubelane; what failed is in `failure`.
std::optional<history> ask(const net::endpoint& admin, std::string& failure) {
  const auto answer = ask_admin(admin, "/events", answer_limit);
  const auto where = net::to_string(admin);
  if (!answer) {
    failure = "no answer from " + where + ": " + answer.error();
    return std::nullopt;
  }
  try {
    history events;
    const auto document = boost::json::parse(answer->body);
    for (const auto& one : document.at("events").as_array())
      if (auto read = proxy::parse_event(boost::json::serialize(one)))
        events.push_back(std::move(*read));
    return events;
  } catch (const std::exception&) {
    failure = where + " answers, but not as kubelane does";
    return std::nullopt;
  }
}

/// Of a running kubelane, else of its file, which is said.
std::optional<history> find(const events_options& options, const net::endpoint& admin) {
  std::string failure;
  if (auto events = ask(admin, failure)) return events;
  auto events = proxy::read_events(options.file);
  if (events)
    std::cerr << failure << "; this is what " << options.file << " remembers\n";
  else
    std::cerr << failure << "; and " << options.file << " cannot be read: " << std::strerror(errno)
              << '\n';
  return events;
}

int run(const events_options& options) {
  const auto admin = parse_admin(options.admin);
  if (!admin) return usage_error;
  event_choice choice{.upstream = options.upstream};
  if (!options.since.empty()) {
    const auto since = config::parse_duration(options.since);
    if (!since) {
      std::cerr << "--since " << options.since
                << ": not a duration: write a whole number and ms, s, m or h, as 10m\n";
      return usage_error;
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    choice.since_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - *since).count();
  }
  const auto all = find(options, *admin);
  if (!all) return no_answer;
  const auto chosen = choose(*all, choice);
  std::cout << (options.json ? proxy::events_document(chosen)
                             : events_table(chosen, wants_colours() ? colour::on : colour::off));
  return 0;
}

}  // namespace

void add_events(CLI::App& app, int& status) {
  auto options = std::make_shared<events_options>();
  auto* command = app.add_subcommand("events", "show the last thousand state changes");
  command->add_option("--admin", options->admin, "the admin address of a running kubelane")
      ->capture_default_str();
  command->add_option("--file", options->file, "read where none answers")->capture_default_str();
  command->add_option("--since", options->since, "only those of the last 10m, 2h, ...");
  command->add_option("--upstream", options->upstream, "only those of this API server");
  command->add_flag("--json", options->json, "print the JSON of /events");
  command->footer("Exit status: 0, 2 no answer and no file.");
  command->callback([options, &status] { status = run(*options); });
}

}  // namespace kubelane::commands
