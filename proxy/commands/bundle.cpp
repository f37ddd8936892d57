#include "proxy/commands/bundle.hpp"

#include "config/last_good.hpp"
#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/capture.hpp"
#include "proxy/commands/redact.hpp"
#include "proxy/commands/status_table.hpp"
#include "proxy/event.hpp"
#include "telemetry/line_file.hpp"

#include <boost/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

namespace kubelane::commands {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;

constexpr auto answer_limit = 5s;
constexpr auto command_limit = 20s;
constexpr std::size_t most_output = 64 * 1024 * 1024;
constexpr const char* log_lines = "10000";
constexpr const char* unit = "kubelane.service";
constexpr const char* state_folder = "/var/lib/kubelane";
constexpr const char* usual_config = "/etc/kubelane/config.yaml";

/// A folder that goes away, and in it what will be in the bundle.
class collection {
 public:
  collection() {
    std::string pattern = fs::temp_directory_path() / "kubelane-bundle-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), pattern);
    root_ = pattern;
    fs::create_directory(root_ / name_);
  }
  ~collection() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  collection(const collection&) = delete;
  collection& operator=(const collection&) = delete;

  void add(const std::string& file, std::string_view text) {
    say(file);
    std::ofstream(root_ / name_ / file, std::ios::binary) << redact(text);
    ++files_;
  }
  void note(const std::string& file, const std::string& why) {
    notes_ += file + ": " + why + '\n';
    ++missing_;
  }
  void add(const std::string& file, const captured& from) {
    if (!from.failure.empty()) note(file, from.failure);
    if (!from.output.empty()) add(file, from.output);
  }
  void run(const std::string& file, std::vector<std::string> command) {
    say(file);
    add(file, capture(std::move(command), command_limit, most_output));
  }
  void copy(const std::string& file, const std::string& path) {
    const auto text = telemetry::read_text(path);
    if (text)
      add(file, "# " + path + "\n" + *text);
    else
      note(file, path + ": " + std::strerror(errno));
  }

  /// All of it as `path`; what failed.
  std::string pack(const std::string& path) {
    add("NOTES.txt", notes_.empty() ? "Everything could be had.\n"
                                    : "What could not be had, or not all of it:\n\n" + notes_);
    const auto part = path + ".part";
    auto made = capture({"tar", "-czf", part, "-C", root_, name_}, command_limit, most_output);
    std::error_code error;
    if (made.failure.empty()) fs::rename(part, path, error);
    if (error) made.failure = error.message();
    if (made.failure.empty()) return {};
    fs::remove(part, error);
    return made.failure + (made.output.empty() ? "" : ": " + made.output);
  }

  int files() const { return files_; }
  int missing() const { return missing_; }
  /// Ends the line that tells what is being done.
  void done() const {
    if (on_terminal_) std::cerr << "\r\x1b[K" << std::flush;
  }

 private:
  void say(const std::string& file) const {
    if (on_terminal_)
      std::cerr << "\r\x1b[K" << file << std::flush;
    else if (file != said_)
      std::cerr << file << '\n';
    said_ = file;
  }

  fs::path root_;
  std::string name_ = "kubelane-bundle";
  std::string notes_;
  int files_ = 0;
  int missing_ = 0;
  bool on_terminal_ = ::isatty(STDERR_FILENO) == 1;
  mutable std::string said_;
};

struct running {
  std::string pid;
  std::string config = usual_config;
};

/// What the admin port says; who answers there.
running add_answers(collection& into, const net::endpoint& admin) {
  running found;
  const std::array<std::pair<const char*, const char*>, 4> wanted = {{{"/status", "status.json"},
                                                                      {"/events", "events.json"},
                                                                      {"/metrics", "metrics.txt"},
                                                                      {"/readyz", "readyz.txt"}}};
  for (const auto& [path, file] : wanted) {
    const auto answer = ask_admin(admin, path, answer_limit);
    if (answer)
      into.add(file, answer->body);
    else
      into.note(file, "no answer from " + net::to_string(admin) + ": " + answer.error());
    if (!answer || std::string_view(path) != "/status") continue;
    try {
      const auto status = json::parse(answer->body);
      found.pid = std::to_string(status.at("pid").to_number<int>());
      found.config = std::string(status.at("config").as_string());
      into.add("status.txt", status_table(answer->body, colour::off));
    } catch (const std::exception&) {
      into.note("status.txt", net::to_string(admin) + " answers, but not as kubelane does");
    }
  }
  return found;
}

/// Of `ss`, the two lines of each socket that the process has.
std::string sockets_of(const std::string& pid, const std::string& all) {
  std::istringstream lines(all);
  std::string result;
  bool wanted = true;  // the first line is the heading
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '\t' && !result.empty())
      wanted = line.find("pid=" + pid + ",") != std::string::npos;
    if (wanted) result += line + '\n';
  }
  return result;
}

void add_process(collection& into, const std::string& pid) {
  if (pid.empty()) {
    into.note("sockets.txt", "nobody answers, so it is not known whose");
    return into.note("limits.txt", "likewise");
  }
  auto sockets = capture({"ss", "-tanoipe"}, command_limit, most_output);
  if (sockets.failure.empty()) sockets.output = sockets_of(pid, sockets.output);
  into.add("sockets.txt", sockets);
  into.copy("limits.txt", "/proc/" + pid + "/limits");
  into.copy("process.txt", "/proc/" + pid + "/status");
}

/// What systemd says, if it runs this.
std::string main_pid() {
  auto shown = capture({"systemctl", "show", "--property=MainPID", "--value", unit}, command_limit,
                       most_output);
  const auto digits = shown.output.substr(0, shown.output.find('\n'));
  const bool is_one = shown.failure.empty() && !digits.empty() && digits != "0" &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  return is_one ? digits : "";
}

void add_service(collection& into) {
  into.run("unit.txt", {"systemctl", "show", unit});
  into.run("unit-files.txt", {"systemctl", "cat", unit});
  into.run("log.txt", {"journalctl", "--no-pager", "-o", "short-iso-precise", "-n", log_lines, "-u",
                       "kubelane.service", "-u", "kubelane-fallback.service"});
}

void add_configuration(collection& into, const std::string& config) {
  into.copy("config.yaml", config);
  into.run("check.txt", {"/proc/self/exe", "check", "--config", config});
  into.copy("last-good.yaml", config::last_good_path(state_folder));
  into.copy("events.jsonl", proxy::events_path(state_folder));
}

void add_machine(collection& into) {
  into.run("kernel.txt", {"uname", "-a"});
  into.copy("os.txt", "/etc/os-release");
  into.copy("memory.txt", "/proc/meminfo");
  into.copy("load.txt", "/proc/loadavg");
  into.run("addresses.txt", {"ip", "-brief", "address"});
  into.run("routes.txt", {"ip", "route", "show", "table", "all"});
}

}  // namespace

int write_bundle(const std::string& path, const net::endpoint& admin) {
  ::umask(077);
  try {
    collection all;
    auto found = add_answers(all, admin);
    if (found.pid.empty()) found.pid = main_pid();
    all.add("version.txt", "this command: kubelane " KUBELANE_VERSION "\nwritten: " +
                               proxy::rfc3339(std::time(nullptr) * 1000) + "\nprocess: " +
                               (found.pid.empty() ? "none found" : found.pid) + '\n');
    add_process(all, found.pid);
    add_configuration(all, found.config);
    add_service(all);
    add_machine(all);
    const auto failure = all.pack(path);
    all.done();
    if (!failure.empty()) {
      std::cerr << "cannot write " << path << ": " << failure << '\n';
      return 1;
    }
    std::cout << path << ": " << all.files() << " files, " << fs::file_size(path) / 1024 + 1
              << " KiB, without keys and tokens; " << all.missing()
              << " could not be had (see NOTES.txt)\n";
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "cannot write " << path << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace kubelane::commands
