#include "proxy/event.hpp"

#include "proxy/probe_history.hpp"

#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

const state_change change{1'700'000'000'123, "cp2", health::state::ready, health::state::not_ready,
                          "etcd"};

TEST(Event, ALineIsReadAsItWasWritten) {
  const state_change odd{1, "<b>\"\n", health::state::unknown, health::state::impostor, "a\tb\x01"};
  for (const auto& each : {change, odd}) {
    const auto line = to_line(each);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto again = parse_event(line);
    ASSERT_TRUE(again) << line;
    EXPECT_EQ(again->at_ms, each.at_ms);
    EXPECT_EQ(again->upstream, each.upstream);
    EXPECT_EQ(again->from, each.from);
    EXPECT_EQ(again->to, each.to);
    EXPECT_EQ(again->cause, each.cause);
  }
}

TEST(Event, EveryPartOfALineThatWasTornIsNone) {
  const auto line = to_line(change);
  for (std::size_t size = 0; size < line.size(); ++size)
    EXPECT_FALSE(parse_event(line.substr(0, size))) << size;
}

TEST(Event, WhatIsNoEventIsNone) {
  for (const char* text :
       {"", "null", "[]", "{}", "{\"at\":1}", "\0\0\0",
        R"({"at":"yesterday","upstream":"a","from":"ready","to":"dead","cause":""})",
        R"({"at":"2023-11-14T22:13:20.123Z","upstream":"a","from":"well","to":"dead","cause":""})",
        R"({"at":"2023-11-14T22:13:20.123Z","upstream":7,"from":"ready","to":"dead","cause":""})"})
    EXPECT_FALSE(parse_event(text)) << text;
  EXPECT_FALSE(parse_event(std::string(100'000, '[')));
}

TEST(Event, BrokenLinesOfAFileAreLeftOut) {
  const auto line = to_line(change);
  const auto text = line + "\n" + line.substr(0, 20) + "\n" + std::string(50, '\0') + "\n" + line +
                    "\n" + line.substr(0, line.size() - 1);
  EXPECT_EQ(parse_events(text).size(), 2U);
}

TEST(Event, AFileGivesItsLastThousand) {
  std::string text;
  for (int i = 0; i < 1500; ++i) {
    auto one = change;
    one.at_ms = i;
    text += to_line(one) + '\n';
  }
  const auto events = parse_events(text);
  ASSERT_EQ(events.size(), remembered_events);
  EXPECT_EQ(events.front().at_ms, 500);
  EXPECT_EQ(events.back().at_ms, 1499);
}

TEST(Event, TimesAreReadBack) {
  for (const std::int64_t at : {0L, 999L, 951'782'400'000L, 1'700'000'000'123L})
    EXPECT_EQ(parse_rfc3339(rfc3339(at)), at);
  for (const char* text :
       {"", "2023-11-14", "2023-02-31T00:00:00.000Z", "2023-11-14T22:13:20.123Zx"})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

TEST(ProbeHistory, KeepsTheLastOnesOldestFirst) {
  probe_history history;
  EXPECT_EQ(history.size(), 0U);
  for (int i = 0; i < 75; ++i) history.add({i, std::nullopt});
  ASSERT_EQ(history.size(), probe_history::capacity);
  EXPECT_EQ(history[0].at_ms, 15);
  EXPECT_EQ(history[history.size() - 1].at_ms, 74);
}

}  // namespace
}  // namespace kubelane::proxy
