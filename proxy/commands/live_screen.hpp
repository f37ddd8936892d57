#pragma once

#include <chrono>
#include <csignal>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace kubelane::commands {

/// Signals that wait until they are asked for, instead of interrupting.
class held_signals {
 public:
  held_signals(std::initializer_list<int> which);
  ~held_signals();
  held_signals(const held_signals&) = delete;
  held_signals& operator=(const held_signals&) = delete;

  /// Waits for one of them, `limit` at most.
  std::optional<int> wait(std::chrono::milliseconds limit) const;

 private:
  sigset_t set_{};
  sigset_t before_{};
};

/// A terminal's second screen on standard output, drawn over without flicker; what was on the
/// terminal is there again when this is gone.
class live_screen {
 public:
  live_screen();
  ~live_screen();
  live_screen(const live_screen&) = delete;
  live_screen& operator=(const live_screen&) = delete;

  /// Shows `text`, cut to the terminal's size as it is now.
  void draw(std::string_view text);
  /// Gives the terminal back, stops this process as Ctrl-Z does, and goes on after that.
  void suspend();

 private:
  static void enter();
  static void leave();
};

/// Whether standard output is a terminal that wants colours. Source: no-color.org.
bool wants_colours();

}  // namespace kubelane::commands
