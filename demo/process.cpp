#include "demo/process.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

namespace kubelane::demo {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

[[noreturn]] void become(std::vector<char*> arguments, const char* log_file) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int log = ::open(log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  // Asio's sockets are not close-on-exec: a killed server's connections would live on in the child.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::execv("/proc/self/exe", arguments.data());
  ::_exit(127);
}

}  // namespace

process::process(const std::vector<std::string>& arguments, const std::string& log_file) {
  // Everything is allocated before the fork: between fork and exec only system calls are safe.
  std::vector<std::string> copies = arguments;
  copies.insert(copies.begin(), "kubelane");
  std::vector<char*> pointers;
  for (auto& one : copies) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become(std::move(pointers), log_file.c_str());
}

process::process(process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

process& process::operator=(process&& other) noexcept {
  if (this == &other) return *this;
  kill();
  pid_ = std::exchange(other.pid_, -1);
  return *this;
}

void process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void process::kill() noexcept {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
}

bool process::finish() noexcept {
  using namespace std::chrono_literals;
  for (int tries = 0; pid_ > 0 && tries < 200; ++tries) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    std::this_thread::sleep_for(10ms);
  }
  kill();
  return false;
}

bool process::running() const noexcept {
  siginfo_t info{};
  if (pid_ <= 0) return false;
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

scratch_directory::scratch_directory() {
  std::string name = (std::filesystem::temp_directory_path() / "kubelane-demo-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) fail("mkdtemp");
  path_ = name;
}

scratch_directory::~scratch_directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string scratch_directory::write(const std::string& name, const std::string& content) const {
  const auto where = path(name);
  std::ofstream file(where, std::ios::binary);
  file << content;
  if (!file.flush()) fail(where.c_str());
  return where;
}

std::vector<int> free_ports(std::size_t count) {
  // Below those that the kernel gives to connections: one of these may be taken at any moment.
  static std::mt19937 random{std::random_device{}()};
  static std::uniform_int_distribution<int> any{15'000, 32'000};
  static std::set<int> given;
  std::vector<int> ports;
  while (ports.size() < count) {
    const int port = any(random);
    if (given.contains(port)) continue;
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) fail("a free port");
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool free =
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (!free) continue;
    given.insert(port);
    ports.push_back(port);
  }
  return ports;
}

}  // namespace kubelane::demo
