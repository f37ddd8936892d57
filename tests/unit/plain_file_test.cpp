#include "proxy/commands/plain_file.hpp"

#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

namespace kubelane::commands {
namespace {

using test::temporary_folder;
namespace fs = std::filesystem;

TEST(PlainFile, IsReadToItsEndOrToTheLimit) {
  const temporary_folder folder;
  const auto path = folder.write("file", "0123456789");
  const auto all = read_plain_file(path, links::refuse, 10);
  EXPECT_EQ(all.text, "0123456789");
  EXPECT_EQ(all.failure, "");
  const auto part = read_plain_file(path, links::refuse, 4);
  EXPECT_EQ(part.text, "0123");
  EXPECT_EQ(part.failure, "only its first 4 bytes");
  EXPECT_NE(read_plain_file("/proc/self/status", links::follow, 1 << 20).text, "");
}

TEST(PlainFile, NothingElseIsRead) {
  const temporary_folder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  for (const auto& path : {folder / "fifo", std::string("/dev/zero"), folder / ""}) {
    const auto read = read_plain_file(path, links::follow, 100);
    EXPECT_EQ(read.text, "") << path;
    EXPECT_EQ(read.failure, "not a regular file") << path;
  }
  EXPECT_EQ(read_plain_file(folder / "missing", links::follow, 100).failure,
            "No such file or directory");
}

TEST(PlainFile, ALinkIsFollowedOnlyWhereItMay) {
  const temporary_folder folder;
  fs::create_symlink(folder.write("file", "text"), folder / "link");
  EXPECT_EQ(read_plain_file(folder / "link", links::follow, 100).text, "text");
  const auto refused = read_plain_file(folder / "link", links::refuse, 100);
  EXPECT_EQ(refused.text, "");
  EXPECT_NE(refused.failure, "");
}

TEST(PlainFile, IsPlacedForItsOwnerInsteadOfALink) {
  const temporary_folder folder;
  const auto source = folder.write("source", "text");
  const auto other = folder.write("other", "untouched");
  fs::create_symlink(other, folder / "target");
  EXPECT_EQ(place_private_file(source, folder / "target"), "");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder / "target")));
  EXPECT_EQ(read_plain_file(folder / "target", links::refuse, 100).text, "text");
  EXPECT_EQ(read_plain_file(other, links::refuse, 100).text, "untouched");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(PlainFile, WhereItCannotBePlacedNothingIsLeft) {
  const temporary_folder folder;
  const auto source = folder.write("source", "text");
  fs::create_directory(folder / "target");
  EXPECT_EQ(place_private_file(source, folder / "target"), "Is a directory");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace kubelane::commands
