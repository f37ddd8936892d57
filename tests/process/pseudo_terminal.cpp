#include "pseudo_terminal.hpp"

#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

/// Without what is between ESC and a letter.
std::string without_escapes(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    while (i + 1 < text.size() && std::isalpha(static_cast<unsigned char>(text[i])) == 0) ++i;
  }
  return plain;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find("\r\n", at), text.size());
    auto line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.pop_back();  // the terminal adds one of its own
    lines.push_back(std::move(line));
    at = end + 2;
  }
  return lines;
}

}  // namespace

pseudo_terminal::pseudo_terminal(const std::vector<std::string>& arguments, size of,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> words = {KUBELANE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (auto& one : words) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  winsize window{of.lines, of.columns, 0, 0};
  pid_ = ::forkpty(&master_, nullptr, nullptr, &window);
  if (pid_ < 0) throw std::runtime_error("no terminal");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::unsetenv("NO_COLOR");
    for (const auto& one : environment) ::putenv(const_cast<char*>(one.c_str()));
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    ::execv(KUBELANE_BINARY, pointers.data());
    ::_exit(127);
  }
  ::fcntl(master_, F_SETFL, O_NONBLOCK);
}

pseudo_terminal::~pseudo_terminal() {
  if (wait(0ms) < 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(master_);
}

void pseudo_terminal::resize(size to) const {
  const winsize window{to.lines, to.columns, 0, 0};
  ::ioctl(master_, TIOCSWINSZ, &window);
}

void pseudo_terminal::type(const std::string& keys) const {
  if (::write(master_, keys.data(), keys.size()) < 0) throw std::runtime_error("nobody reads");
}

const std::string& pseudo_terminal::written() {
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto count = ::read(master_, buffer.data(), buffer.size());
    if (count <= 0) return written_;
    written_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::vector<std::string> pseudo_terminal::frame() {
  const auto& all = written();
  const auto end = all.rfind("\x1b[J");
  if (end == std::string::npos) return {};
  const auto begin = all.rfind("\x1b[H", end);
  return begin == std::string::npos ? std::vector<std::string>()
                                    : split(without_escapes(all.substr(begin, end - begin)));
}

bool pseudo_terminal::shows(const std::string& text, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    for (const auto& line : frame())
      if (line.find(text) != std::string::npos) return true;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
}

int pseudo_terminal::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (status_ < 0) {
    written();
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_)
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    else if (std::chrono::steady_clock::now() > end)
      break;
    else
      std::this_thread::sleep_for(5ms);
  }
  written();
  return status_;
}

}  // namespace kubelane::test
