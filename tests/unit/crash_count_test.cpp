#include "systemd/crash_count.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace kubelane::systemd::crash_count {
namespace {

using namespace std::chrono_literals;

class CrashFile : public testing::Test {
 protected:
  CrashFile() { std::filesystem::create_directory(folder_); }
  ~CrashFile() override { std::filesystem::remove_all(folder_); }

  const std::string folder_ = testing::TempDir() + "crash_file." + std::to_string(::getpid());
};

TEST(CrashCount, FatalSignalsAndTheWatchdogAreCrashes) {
  for (const auto* signal : {"SEGV", "ABRT", "BUS", "ILL", "FPE"}) {
    EXPECT_TRUE(is_crash("signal", signal)) << signal;
    EXPECT_TRUE(is_crash("core-dump", signal)) << signal;
  }
  EXPECT_TRUE(is_crash("watchdog", "KILL"));
}

TEST(CrashCount, KillsFromOutsideCleanExitsAndFailedStartsAreNone) {
  EXPECT_FALSE(is_crash("signal", "KILL"));
  EXPECT_FALSE(is_crash("signal", "TERM"));
  EXPECT_FALSE(is_crash("success", "0"));
  EXPECT_FALSE(is_crash("exit-code", "1"));
  EXPECT_FALSE(is_crash("timeout", "KILL"));
  EXPECT_FALSE(is_crash("", ""));
}

TEST(CrashCount, ThreeInTenSecondsAreTooMany) {
  const std::vector<time> times = {100s, 105s, 110s};
  EXPECT_TRUE(too_many(times, 110s));
  EXPECT_FALSE(too_many(times, 110s + 1ms));
  EXPECT_FALSE(too_many(std::vector<time>{100s, 105s}, 105s));
}

TEST(CrashCount, FiveInTenMinutesAreTooMany) {
  const std::vector<time> times = {0min, 2min, 4min, 6min, 8min};
  EXPECT_TRUE(too_many(times, 10min));
  EXPECT_FALSE(too_many(times, 10min + 1ms));
}

TEST(CrashCount, TimesAheadOfNowDoNotCount) {
  EXPECT_FALSE(too_many(std::vector<time>{20s, 21s, 22s}, 10s));
}

TEST(CrashCount, NothingIsNotTooMany) {
  EXPECT_FALSE(too_many({}, 1h));
}

TEST(CrashCount, CrashesOfAnotherBootAreForgotten) {
  EXPECT_EQ(parse("500 1000\n900 2000\n500 3000\n", 500s), (std::vector<time>{1s, 3s}));
}

TEST(CrashCount, AClockThatIsCorrectedALittleIsTheSameBoot) {
  EXPECT_EQ(parse("490 1000\n510 2000\n511 3000\n489 4000\n", 500s), (std::vector<time>{1s, 2s}));
}

TEST(CrashCount, LinesThatMakeNoSenseAreLeftOut) {
  EXPECT_EQ(parse("\n5\n5 x\n5 7y\n5 -1\n 5 1\n-5 1\n5 99999999999999999999\n5 5000", 5s),
            std::vector<time>{5s});
}

TEST(CrashCount, AFileRemembersTheNewestTen) {
  std::vector<time> times;
  for (int i = 1; i <= 12; ++i) times.push_back(time(i));
  const auto kept = parse(format(times, 7s), 7s);
  EXPECT_EQ(kept, std::vector<time>(times.end() - 10, times.end()));
}

TEST_F(CrashFile, HoldsWhatWasNoted) {
  EXPECT_TRUE(read(folder_).empty());
  const auto before = now();
  EXPECT_EQ(note(folder_), std::nullopt);
  EXPECT_EQ(note(folder_), std::nullopt);
  const auto times = read(folder_);
  ASSERT_EQ(times.size(), 2u);
  EXPECT_LE(before, times[0]);
  EXPECT_LE(times[0], times[1]);
}

TEST_F(CrashFile, ThatIsUnreadableCountsAsNone) {
  std::ofstream(folder_ + "/crashes") << "\xff\xfe garbage\n\n";
  EXPECT_TRUE(read(folder_).empty());
  EXPECT_EQ(note(folder_), std::nullopt);
  EXPECT_EQ(read(folder_).size(), 1u);
}

TEST_F(CrashFile, ThatCannotBeWrittenIsNamed) {
  const auto failure = note(folder_ + "/nowhere");
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->find("/nowhere/crashes"), std::string::npos) << *failure;
}

}  // namespace
}  // namespace kubelane::systemd::crash_count
