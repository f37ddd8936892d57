#include "proxy/commands/bundle.hpp"

#include "config/last_good.hpp"
#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/capture.hpp"
#include "proxy/commands/plain_file.hpp"
#include "proxy/commands/redact.hpp"
#include "proxy/commands/status_table.hpp"
#include "proxy/event.hpp"

#include <boost/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
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
constexpr std::size_t most_of_a_file = 16 * 1024 * 1024;
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
  void copy(const std::string& file, const std::string& path, links symbolic = links::follow) {
    const auto read = read_plain_file(path, symbolic, most_of_a_file);
    if (!read.failure.empty()) note(file, path + ": " + read.failure);
    if (read.failure.empty() || !read.text.empty()) add(file, "# " + path + "\n" + read.text);
  }

  /// All of it as `path`; what failed.
  std::string pack(const std::string& path) {
    add("NOTES.txt", notes_.empty() ? "Everything could be had.\n"
                                    : "What could not be had, or not all of it:\n\n" + notes_);
    const std::string packed = root_ / "packed.tar.gz";
    // --force-local: a colon in a name does not make the rest of it a host's.
    const auto made = capture({"tar", "--force-local", "-czf", packed, "-C", root_, name_},
                              command_limit, most_output);
    if (made.failure.empty()) return place_private_file(packed, path);
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
  std::string config;
};

/// What the admin port says; who it says answers there.
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

/// What systemd says, if it runs this.
std::string main_pid() {
  auto shown = capture({"systemctl", "show", "--property=MainPID", "--value", unit}, command_limit,
                       most_output);
  const auto digits = shown.output.substr(0, shown.output.find('\n'));
  const bool is_one = shown.failure.empty() && !digits.empty() && digits != "0" &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  return is_one ? digits : "";
}

/// Whether a process runs the program that this one does, for root or the same user.
bool is_kubelane(const std::string& pid) {
  struct stat self {
  }, program{}, process{};
  const auto folder = "/proc/" + pid;
  return pid != std::to_string(::getpid()) && ::stat("/proc/self/exe", &self) == 0 &&
         ::stat((folder + "/exe").c_str(), &program) == 0 && self.st_dev == program.st_dev &&
         self.st_ino == program.st_ino && ::stat(folder.c_str(), &process) == 0 &&
         (process.st_uid == 0 || process.st_uid == ::geteuid());
}

/// Whether a process was started with `path` as configuration.
bool was_given(const std::string& pid, const std::string& path) {
  std::istringstream words(
      read_plain_file("/proc/" + pid + "/cmdline", links::follow, most_of_a_file).text);
  for (std::string word; std::getline(words, word, '\0');)
    if (word == path || word == "--config=" + path) return true;
  return false;
}

/// Where kubelane is down, any user can answer at its port, with the path of a file that only root
/// reads: of what is `claimed` there, what the kernel or systemd confirms.
running confirmed(collection& into, const running& claimed) {
  running found{main_pid(), usual_config};
  if (claimed.pid.empty()) return found;
  if (claimed.pid != found.pid && !is_kubelane(claimed.pid)) {
    into.note("config.yaml", "who answers says that it is process " + claimed.pid +
                                 ", which is no kubelane of root or of this user; this is " +
                                 usual_config);
    return found;
  }
  found.pid = claimed.pid;
  if (claimed.config == usual_config || was_given(claimed.pid, claimed.config))
    found.config = claimed.config;
  else
    into.note("config.yaml", "who answers says " + claimed.config + ", which process " +
                                 claimed.pid + " was not started with; this is " + usual_config);
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

void add_service(collection& into) {
  into.run("unit.txt", {"systemctl", "show", unit});
  into.run("unit-files.txt", {"systemctl", "cat", unit});
  into.run("log.txt", {"journalctl", "--no-pager", "-o", "short-iso-precise", "-n", log_lines, "-u",
                       "kubelane.service", "-u", "kubelane-fallback.service"});
}

void add_configuration(collection& into, const std::string& config) {
  into.copy("config.yaml", config);
  into.run("check.txt", {"/proc/self/exe", "check", "--config", config});
  // The service's user may write here, but not choose what root reads.
  into.copy("last-good.yaml", config::last_good_path(state_folder), links::refuse);
  into.copy("events.jsonl", proxy::events_path(state_folder), links::refuse);
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
    const auto found = confirmed(all, add_answers(all, admin));
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
