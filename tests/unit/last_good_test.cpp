#include "config/last_good.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace kubelane::config {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(LastGood, TheCopySaysWhatWasGiven) {
  const test::temporary_folder folder;
  ASSERT_TRUE(save_last_good(folder / "", "version: 1\n"));
  EXPECT_EQ(content(last_good_path(folder / "")), "version: 1\n");
  ASSERT_TRUE(save_last_good(folder / "", "version: 1\nzone: a\n"));
  EXPECT_EQ(content(last_good_path(folder / "")), "version: 1\nzone: a\n");
}

TEST(LastGood, TheSameTwiceIsWrittenOnce) {
  const test::temporary_folder folder;
  ASSERT_TRUE(save_last_good(folder / "", "version: 1\n"));
  struct stat before {};
  struct stat after {};
  ASSERT_EQ(stat(last_good_path(folder / "").c_str(), &before), 0);
  ASSERT_TRUE(save_last_good(folder / "", "version: 1\n"));
  ASSERT_EQ(stat(last_good_path(folder / "").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST(LastGood, NobodyElseMayReadIt) {
  const test::temporary_folder folder;
  ASSERT_TRUE(save_last_good(folder / "", "version: 1\n"));
  struct stat about {};
  ASSERT_EQ(stat(last_good_path(folder / "").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
}

TEST(LastGood, AFolderThatIsNotThereIsAnErrorAndLeavesNothing) {
  const test::temporary_folder folder;
  EXPECT_FALSE(save_last_good(folder / "missing", "version: 1\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / ""));
}

}  // namespace
}  // namespace kubelane::config
