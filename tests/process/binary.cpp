#include "binary.hpp"

#include "demo/process.hpp"
#include "proxy/commands/admin_client.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <thread>

extern char** environ;

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

void drain(int pipe, std::string& into) {
  std::array<char, 4096> buffer{};
  while (pipe >= 0) {
    const auto size = ::read(pipe, buffer.data(), buffer.size());
    if (size <= 0) return;
    into.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& one : texts) result.push_back(one.data());
  result.push_back(nullptr);
  return result;
}

void announce(const binary::passed& descriptors, std::vector<std::string>& variables) {
  std::string names;
  for (const auto& [fd, name] : descriptors) names += (names.empty() ? "" : ":") + name;
  variables.push_back("LISTEN_FDS=" + std::to_string(descriptors.size()));
  variables.push_back("LISTEN_FDNAMES=" + names);
}

// In the child: to the numbers from 3 on; the first number that is none of them.
int pass_on(const binary::passed& descriptors) {
  const int first = STDERR_FILENO + 1;
  const int count = static_cast<int>(descriptors.size());
  constexpr int out_of_the_way = 8192;
  for (int i = 0; i < count; ++i)
    ::dup2(descriptors[static_cast<std::size_t>(i)].first, out_of_the_way + i);
  for (int i = 0; i < count; ++i) ::dup2(out_of_the_way + i, first + i);
  return first + count;
}

}  // namespace

binary::binary(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment, const passed& descriptors) {
  std::vector<std::string> words = {KUBELANE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment;
  for (char** one = environ; *one != nullptr; ++one) variables.emplace_back(*one);
  if (!descriptors.empty()) announce(descriptors, variables);
  std::string process(32, '\0');  // the child's number is not known yet
  if (!descriptors.empty()) variables.push_back(process);
  auto word_pointers = pointers_to(words);
  auto variable_pointers = pointers_to(variables);
  std::array<int, 2> out{};
  std::array<int, 2> error{};
  if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(error.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(error[1], STDERR_FILENO);
    const int next = pass_on(descriptors);
    if (!descriptors.empty())
      std::snprintf(variables.back().data(), variables.back().size(), "LISTEN_PID=%d", ::getpid());
    // Asio's sockets are not close-on-exec: a fake server's port would stay open in the child.
    ::close_range(static_cast<unsigned>(next), ~0U, 0);
    ::execve(KUBELANE_BINARY, word_pointers.data(), variable_pointers.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(error[1]);
  out_pipe_ = out[0];
  error_pipe_ = error[0];
  ::fcntl(out_pipe_, F_SETFL, O_NONBLOCK);
  ::fcntl(error_pipe_, F_SETFL, O_NONBLOCK);
  if (pid_ < 0) throw std::runtime_error("no process");
}

binary::~binary() {
  if (running()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(out_pipe_);
  ::close(error_pipe_);
}

void binary::signal(int number) const {
  ::kill(pid_, number);
}

bool binary::running() {
  if (status_ >= 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

int binary::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (running() && std::chrono::steady_clock::now() < end) {
    collect();  // so that it never blocks on a full pipe
    std::this_thread::sleep_for(5ms);
  }
  collect();
  return running() ? -1 : status_;
}

void binary::collect() {
  drain(out_pipe_, out_);
  drain(error_pipe_, error_);
}

const std::string& binary::out() {
  collect();
  return out_;
}

const std::string& binary::error() {
  collect();
  return error_;
}

bool binary::says(const std::string& text, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (error().find(text) == std::string::npos) {
    if (!running() && error().find(text) == std::string::npos) return false;
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(5ms);
  }
  return true;
}

int free_port() {
  return demo::free_ports(1).front();
}

http_answer get(int port, const std::string& path) {
  const auto address = *net::parse_endpoint("127.0.0.1:" + std::to_string(port), 0);
  const auto answer = commands::ask_admin(address, path, 5s);
  if (!answer) return {};
  return {static_cast<int>(answer->status), answer->body};
}

}  // namespace kubelane::test
