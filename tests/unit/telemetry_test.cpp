#include "telemetry/descriptor_count.hpp"
#include "telemetry/log.hpp"
#include "telemetry/process.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::telemetry {
namespace {

using namespace std::chrono_literals;

TEST(LogFormat, TextIsTheEventInWordsThenKeyValue) {
  EXPECT_EQ(format_text("upstream refused", {{"upstream", "cp1"}, {"from", "ready"}}),
            "upstream refused upstream=cp1 from=ready");
}

TEST(LogFormat, ValuesWithSpacesQuotesOrControlsAreQuotedSoThatALineStaysALine) {
  EXPECT_EQ(format_text("e", {{"cause", "two words"}}), R"(e cause="two words")");
  EXPECT_EQ(format_text("e", {{"cause", "a\nb"}}), R"(e cause="a\nb")");
  EXPECT_EQ(format_text("e", {{"cause", R"(say "x")"}}), R"(e cause="say \"x\"")");
  EXPECT_EQ(format_text("e", {{"cause", ""}}), R"(e cause="")");
}

TEST(LogFormat, JsonIsOneObjectWithTimeLevelEventAndTheFields) {
  const auto line = format_json("warn", "upstream hung", {{"upstream", "cp\"1"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find(R"("level":"warn","event":"upstream hung","upstream":"cp\"1"})"),
            std::string::npos)
      << line;
}

TEST(RateLimit, ABurstPassesAndTheRestIsCountedInTheNextThatPasses) {
  rate_limit limit(2, 10s);
  const rate_limit::time_point start{1h};
  EXPECT_TRUE(limit.check("a", start).pass);
  EXPECT_TRUE(limit.check("a", start + 1s).pass);
  EXPECT_FALSE(limit.check("a", start + 2s).pass);
  EXPECT_FALSE(limit.check("a", start + 9s).pass);
  const auto later = limit.check("a", start + 10s);
  EXPECT_TRUE(later.pass);
  EXPECT_EQ(later.suppressed, 2);
}

TEST(RateLimit, WhatNoLaterLineTellsIsToldOnceItsTimeIsOver) {
  rate_limit limit(1, 10s);
  const rate_limit::time_point start{1h};
  for (int i = 0; i < 5; ++i) limit.check("a", start);
  limit.check("b", start);
  EXPECT_TRUE(limit.take_rest(start + 9s).empty());
  const auto rest = limit.take_rest(start + 10s);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].key, "a");
  EXPECT_EQ(rest[0].suppressed, 4);
  EXPECT_TRUE(limit.take_rest(start + 20s).empty());
  EXPECT_EQ(limit.check("a", start + 20s).suppressed, 0);
}

/// Standard error as a pipe that systemd calls its journal, while this lives.
class journal {
 public:
  journal() : own_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(pipe_.data()), 0);
    ::dup2(pipe_[1], STDERR_FILENO);
    struct stat about {};
    ::fstat(STDERR_FILENO, &about);
    const auto stream = std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  }
  ~journal() { text(); }
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;

  /// Everything that was written; gives standard error back.
  std::string text() {
    if (own_ < 0) return seen_;
    ::dup2(own_, STDERR_FILENO);
    ::close(own_);
    own_ = -1;
    ::close(pipe_[1]);
    ::unsetenv("JOURNAL_STREAM");
    std::array<char, 4096> piece;
    for (ssize_t count; (count = ::read(pipe_[0], piece.data(), piece.size())) > 0;)
      seen_.append(piece.data(), static_cast<std::size_t>(count));
    ::close(pipe_[0]);
    return seen_;
  }

 private:
  int own_;
  std::array<int, 2> pipe_{};
  std::string seen_;
};

TEST(Log, LinesForTheJournalBeginWithTheirPriorityAndHaveNoTimeOfTheirOwn) {
  journal out;
  {
    log to(log_level::trace, log_format::text);
    to.error("an error");
    to.warn("a warning", {{"key", "value"}});
    to.info("news");
    to.debug("a detail");
    to.set(log_level::trace, log_format::json);
    to.info("as JSON");
  }
  const auto text = out.text();
  EXPECT_EQ(text.substr(0, text.find("<6>{")),
            "<3>an error\n<4>a warning key=value\n<6>news\n<7>a detail\n");
  EXPECT_NE(text.find(R"("level":"info","event":"as JSON"})"), std::string::npos) << text;
}

TEST(Log, ThousandsOfDetailsThatNobodyReadsDoNotPushOutWhatMatters) {
  journal out;
  std::string text;
  std::thread reader;
  {
    log to(log_level::debug, log_format::text);
    const std::string detail(1'000, 'x');
    for (int i = 0; i < 200; ++i) to.debug(detail);
    to.info("what matters");
    for (int i = 0; i < 2'000; ++i) to.debug(detail);
    EXPECT_GT(to.dropped(), 1'000U);
    reader = std::thread([&] { text = out.text(); });
  }
  reader.join();
  EXPECT_NE(text.find("<6>what matters\n"), std::string::npos);
}

TEST(RateLimit, KeysDoNotTakeEachOthersPlace) {
  rate_limit limit(1, 10s);
  const rate_limit::time_point start{1h};
  EXPECT_TRUE(limit.check("a", start).pass);
  EXPECT_TRUE(limit.check("b", start).pass);
  EXPECT_FALSE(limit.check("a", start).pass);
}

TEST(ProcessFigures, AreThisProcessOwn) {
  const auto figures = read_process_figures();
  ASSERT_TRUE(figures);
  EXPECT_GT(figures->resident_bytes, 1'000'000U);
  EXPECT_GE(figures->virtual_bytes, figures->resident_bytes);
  EXPECT_GT(figures->max_descriptors, 3U);
  EXPECT_GT(figures->start_time_seconds, 1.7e9);
}

/// Standard error, so many times more.
class open_files {
 public:
  explicit open_files(int count) {
    for (int i = 0; i < count; ++i) all_.push_back(::dup(STDERR_FILENO));
  }
  ~open_files() {
    for (const int each : all_) ::close(each);
  }
  open_files(const open_files&) = delete;
  open_files& operator=(const open_files&) = delete;

 private:
  std::vector<int> all_;
};

class DescriptorCount : public ::testing::TestWithParam<descriptor_count::how> {};

TEST_P(DescriptorCount, IsKnownAtOnceAndFollowsWhatIsOpened) {
  descriptor_count count(GetParam());
  const auto before = count.value();
  EXPECT_GE(before, 3U);
  for (int i = 0; i < 10; ++i) count.step();
  const open_files more(3000);
  count.value();  // as old as the last walk; begins the next
  for (int i = 0; i < 10; ++i) count.step();
  EXPECT_EQ(count.value(), before + 3000);
}

INSTANTIATE_TEST_SUITE_P(Both, DescriptorCount,
                         ::testing::Values(descriptor_count::how::as_kernel_allows,
                                           descriptor_count::how::walk));

}  // namespace
}  // namespace kubelane::telemetry
