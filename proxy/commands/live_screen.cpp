#include "proxy/commands/live_screen.hpp"

#include "proxy/commands/text_table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace kubelane::commands {
namespace {

struct size {
  std::size_t columns = 80;
  std::size_t lines = 24;
};

size terminal_size() {
  winsize found{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0)
    return {};
  return {found.ws_col, found.ws_row};
}

// Not std::cout: a frame is one write, so that no half of it is ever seen.
void put(std::string_view text) {
  while (!text.empty()) {
    const auto count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

held_signals::held_signals(std::initializer_list<int> which) {
  sigemptyset(&set_);
  for (const int each : which) sigaddset(&set_, each);
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

held_signals::~held_signals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> held_signals::wait(std::chrono::milliseconds limit) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const std::chrono::nanoseconds rest = limit - seconds;
  const timespec time{seconds.count(), rest.count()};
  const int which = ::sigtimedwait(&set_, nullptr, &time);
  if (which < 0) return std::nullopt;
  return which;
}

live_screen::live_screen() {
  enter();
}

live_screen::~live_screen() {
  leave();
}

// The second screen, without a cursor and without wrapping long lines.
void live_screen::enter() {
  put("\x1b[?1049h\x1b[?25l\x1b[?7l");
}

void live_screen::leave() {
  put("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l");
}

void live_screen::draw(std::string_view text) {
  const auto room = terminal_size();
  auto rest = fit(text, room.columns, room.lines);
  std::string frame = "\x1b[H";
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    frame += rest.substr(0, end) + "\x1b[K";
    rest.erase(0, end + 1);
    if (!rest.empty()) frame += "\r\n";  // after the last line it would scroll
  }
  put(frame + "\x1b[J");
}

void live_screen::suspend() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

bool wants_colours() {
  const char* const refused = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0');
}

}  // namespace kubelane::commands
