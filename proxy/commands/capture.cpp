#include "proxy/commands/capture.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace kubelane::commands {
namespace {

using clock = std::chrono::steady_clock;
constexpr int not_found = 127;

[[noreturn]] void become(char* const* words, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::setenv("LC_ALL", "C", 1);
  ::execvp(words[0], words);
  ::_exit(not_found);
}

/// Reads until the end, the time or the room is used up; which of the latter, in words.
std::string read_all(int from, clock::time_point end, std::size_t most, std::string& into) {
  std::array<char, 16384> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - clock::now());
    pollfd waiting{from, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) == 0)
      return "it took too long";
    const auto size = ::read(from, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};
    into.append(buffer.data(), static_cast<std::size_t>(size));
    if (into.size() > most) return "it said too much";
  }
}

std::string describe(int status, const std::string& program) {
  if (WIFSIGNALED(status))
    return program + " was ended by signal " + std::to_string(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == not_found) return program + " is not installed";
  return code == 0 ? "" : program + " exited with " + std::to_string(code);
}

}  // namespace

captured capture(std::vector<std::string> command, std::chrono::milliseconds limit,
                 std::size_t most) {
  std::vector<char*> words;
  for (auto& each : command) words.push_back(each.data());
  words.push_back(nullptr);
  captured result;
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {"", std::strerror(errno)};
  const pid_t child = ::fork();
  if (child == 0) become(words.data(), pipe[1]);
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    return {"", std::strerror(errno)};
  }
  result.failure = read_all(pipe[0], clock::now() + limit, most, result.output);
  ::close(pipe[0]);
  if (!result.failure.empty()) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (result.failure.empty()) result.failure = describe(status, command.front());
  return result;
}

}  // namespace kubelane::commands
