#include "proxy/commands/text_table.hpp"

#include "proxy/commands/events_table.hpp"
#include "proxy/commands/history_strip.hpp"

#include <gtest/gtest.h>

namespace kubelane::commands {
namespace {

using health::state;
using proxy::state_change;

TEST(Fit, CutsLinesAndTheirNumberAndSaysSo) {
  EXPECT_EQ(fit("abcdef\nabc\n", 4, 9), "abc\u2026\nabc\n");
  EXPECT_EQ(fit("abcd\n", 4, 9), "abcd\n");
  EXPECT_EQ(fit("a\nb\nc\nd\n", 9, 3), "a\nb\n\u2026\n");
  EXPECT_EQ(fit("a\nb\nc\n", 9, 3), "a\nb\nc\n");
  EXPECT_EQ(fit("abc", 1, 1), "\u2026\n");
  EXPECT_EQ(fit("abc", 0, 1), "");
}

TEST(Fit, ColoursTakeNoRoomAndEndWithTheLine) {
  EXPECT_EQ(fit("\x1b[31mdead\x1b[0m\n", 4, 1), "\x1b[31mdead\x1b[0m\n");
  EXPECT_EQ(fit("\x1b[31mdead\x1b[0m!\n", 4, 1), "\x1b[31mdea\u2026\x1b[0m\n");
}

TEST(Fit, ACharacterOfSeveralBytesIsOne) {
  EXPECT_EQ(fit("\u00e4\u00f6\u00fc\n", 3, 1), "\u00e4\u00f6\u00fc\n");
  EXPECT_EQ(fit("\u00e4\u00f6\u00fc\n", 2, 1), "\u00e4\u2026\n");
}

TEST(Fit, AnUnfinishedColourOrCharacterIsNoTrap) {
  EXPECT_EQ(fit("\x1b[31", 5, 1), "\x1b[31\n");
  EXPECT_EQ(fit("\x84\x84", 1, 1), "\x84\x84\n");
}

TEST(Printable, NoControlCharacterIsLeft) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\x7f\xc2\x9b"
                      "1m\u00e4"),
            "a?[2Jb????1m\u00e4");
}

TEST(Aligned, PaintsTheStateAndKeepsTheColumns) {
  const std::vector<row> rows = {{"A", "STATE"}, {"cp1", "dead"}};
  EXPECT_EQ(aligned(rows, colour::off, 1), "A    STATE\ncp1  dead\n");
  EXPECT_EQ(aligned(rows, colour::on, 1), "A    STATE\ncp1  \x1b[31mdead\x1b[0m\n");
}

constexpr strip_window ten_cells{.until_ms = 1000, .cell_ms = 100, .cells = 10};

TEST(HistoryStrip, ShowsTheWorstOfEachPeriod) {
  const std::deque<state_change> events = {{250, "cp1", state::unknown, state::ready, ""},
                                           {410, "cp1", state::ready, state::slow, ""},
                                           {420, "cp2", state::ready, state::dead, ""},
                                           {610, "cp1", state::slow, state::dead, ""},
                                           {650, "cp1", state::dead, state::not_ready, ""},
                                           {800, "cp1", state::not_ready, state::ready, ""}};
  EXPECT_EQ(history_strip(events, "cp1", state::ready, 800, ten_cells), "..==~~x!==");
}

TEST(HistoryStrip, WithoutEventsShowsWhatItIsSinceWhen) {
  EXPECT_EQ(history_strip({}, "cp1", state::hung, 700, ten_cells), ".......xxx");
  EXPECT_EQ(history_strip({}, "cp1", state::ready, -5000, ten_cells), "==========");
}

TEST(HistoryStrip, WhatIsOlderThanTheWindowCountsAsItsBeginning) {
  const std::deque<state_change> events = {{-900, "cp1", state::ready, state::refused, ""},
                                           {2000, "cp1", state::refused, state::ready, ""}};
  EXPECT_EQ(history_strip(events, "cp1", state::ready, 2000, ten_cells), "xxxxxxxxxx");
}

TEST(EventChoice, ByTimeAndByUpstreamOrItsDnsName) {
  const std::deque<state_change> events = {{1, "cp1", state::ready, state::dead, ""},
                                           {2, "cp2/10.0.0.1", state::ready, state::dead, ""},
                                           {3, "cp22", state::ready, state::dead, "x\x1by"}};
  EXPECT_EQ(choose(events, {}).size(), 3U);
  EXPECT_EQ(choose(events, {.since_ms = 2, .upstream = ""}).size(), 2U);
  EXPECT_EQ(choose(events, {.since_ms = 0, .upstream = "cp2"}).size(), 1U);
  const auto table = events_table(events, colour::off);
  EXPECT_NE(table.find("cp22          dead   ready  x?y"), std::string::npos) << table;
  EXPECT_EQ(events_table({}, colour::on), "no state changes\n");
}

}  // namespace
}  // namespace kubelane::commands
