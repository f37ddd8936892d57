#include "telemetry/line_file.hpp"

#include "telemetry/log.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kubelane::telemetry {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LineFile, AppendsToWhatIsThere) {
  const test::temporary_folder folder;
  const auto path = folder.write("lines", "one\n");
  line_file file(path, 10);
  EXPECT_EQ(file.add("two"), 0);
  EXPECT_EQ(content(path), "one\ntwo\n");
}

TEST(LineFile, ATornLineEndsBeforeTheNext) {
  const test::temporary_folder folder;
  const auto path = folder.write("lines", "one\ntw");
  line_file file(path, 10);
  EXPECT_EQ(file.add("three"), 0);
  EXPECT_EQ(file.add("four"), 0);
  EXPECT_EQ(content(path), "one\ntw\nthree\nfour\n");
}

TEST(LineFile, AtTwiceWhatIsKeptTheOldestGo) {
  const test::temporary_folder folder;
  const auto path = folder / "lines";
  line_file file(path, 3);
  for (int i = 1; i <= 6; ++i) EXPECT_EQ(file.add(std::to_string(i)), 0);
  EXPECT_EQ(content(path), "4\n5\n6\n");
  EXPECT_EQ(file.add("7"), 0);
  EXPECT_EQ(content(path), "4\n5\n6\n7\n");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(LineFile, AFileThatWasRemovedIsMadeAgain) {
  const test::temporary_folder folder;
  const auto path = folder / "lines";
  line_file file(path, 3);
  EXPECT_EQ(file.add("1"), 0);
  std::filesystem::remove(path);
  EXPECT_EQ(file.add("2"), 0);
  EXPECT_EQ(content(path), "2\n");
}

TEST(LineFile, SaysWhatFailsAndTriesAgain) {
  const test::temporary_folder folder;
  line_file file(folder / "missing/lines", 3);
  EXPECT_EQ(file.add("1"), ENOENT);
  std::filesystem::create_directory(folder / "missing");
  EXPECT_EQ(file.add("2"), 0);
  EXPECT_EQ(content(folder / "missing/lines"), "2\n");
}

TEST(LineFile, OnlyItsOwnerMayReadIt) {
  const test::temporary_folder folder;
  line_file file(folder / "lines", 3);
  EXPECT_EQ(file.add("1"), 0);
  EXPECT_EQ(std::filesystem::status(folder / "lines").permissions(), std::filesystem::perms(0600));
}

TEST(ReadText, ADirectoryOrNothingIsNoText) {
  const test::temporary_folder folder;
  EXPECT_EQ(read_text(folder.write("file", "a\nb")), "a\nb");
  EXPECT_FALSE(read_text(folder / ""));
  EXPECT_EQ(errno, EISDIR);
  EXPECT_FALSE(read_text(folder / "none"));
  EXPECT_EQ(errno, ENOENT);
}

TEST(Log, KeepsLinesInAFileFromItsOwnThread) {
  const test::temporary_folder folder;
  {
    log out(log_level::error, log_format::text);
    out.keep("nowhere yet");
    out.keep_in(std::make_unique<line_file>(folder / "lines", 100));
    for (int i = 0; i < 3; ++i) out.keep(std::to_string(i));
    out.flush(std::chrono::seconds(5));
    EXPECT_EQ(out.keeping_failed(), 0);
  }
  EXPECT_EQ(content(folder / "lines"), "0\n1\n2\n");
}

TEST(Log, SaysWhyALineCouldNotBeKept) {
  const test::temporary_folder folder;
  log out(log_level::error, log_format::text);
  out.keep_in(std::make_unique<line_file>(folder / "missing/lines", 100));
  out.keep("lost");
  out.flush(std::chrono::seconds(5));
  EXPECT_EQ(out.keeping_failed(), ENOENT);
}

}  // namespace
}  // namespace kubelane::telemetry
