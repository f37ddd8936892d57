#include "config/file_watch.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace kubelane::config {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Texts written in one test differ in size: two writes in one tick of the kernel's clock have one
/// time.
class FileWatch : public testing::Test {
 protected:
  FileWatch() { write("file", "a"); }

  std::string path(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }

  static file_watch::clock::time_point after(file_watch::clock::duration since_start) {
    return file_watch::clock::time_point() + since_start;
  }

  /// How many changes polls every 100 ms in `from`..`to` report.
  static int changes(file_watch& watch, std::chrono::milliseconds from,
                     std::chrono::milliseconds to) {
    int count = 0;
    for (auto now = from; now <= to; now += 100ms)
      if (watch.poll(after(now))) ++count;
    return count;
  }

 private:
  test::temporary_folder folder_;
};

TEST_F(FileWatch, WhatIsThereAtFirstIsNoChange) {
  file_watch watch({path("file")});
  EXPECT_EQ(changes(watch, 0s, 5s), 0);
}

TEST_F(FileWatch, AWriteInPlaceIsOneChangeAfterASecond) {
  file_watch watch({path("file")});
  write("file", "bb");
  EXPECT_EQ(changes(watch, 0s, 900ms), 0);
  EXPECT_EQ(changes(watch, 1s, 10s), 1);
}

TEST_F(FileWatch, ARenameOverTheFileIsAChange) {
  file_watch watch({path("file")});
  write("new", "b");
  fs::rename(path("new"), path("file"));
  EXPECT_EQ(changes(watch, 0s, 5s), 1);
}

TEST_F(FileWatch, ASwitchedLinkAboveTheFileIsAChange) {
  for (const auto* version : {"v1", "v2"}) {
    fs::create_directory(path(version));
    write(std::string(version) + "/file", "same");
  }
  fs::create_directory_symlink("v1", path("..data"));
  fs::create_symlink("..data/file", path("mounted"));
  file_watch watch({path("mounted")});
  fs::create_directory_symlink("v2", path("..data_tmp"));
  fs::rename(path("..data_tmp"), path("..data"));
  EXPECT_EQ(changes(watch, 0s, 5s), 1);
}

TEST_F(FileWatch, AFileStillBeingWrittenWaitsUntilItIsQuietForASecond) {
  file_watch watch({path("file")});
  for (int part = 1; part <= 5; ++part) {
    write("file", std::string(static_cast<std::size_t>(part) * 10, 'x'));
    EXPECT_EQ(changes(watch, part * 900ms, part * 900ms + 800ms), 0) << part;
  }
  EXPECT_EQ(changes(watch, 5400ms, 10s), 1);
}

TEST_F(FileWatch, AMissingFileIsNoChange) {
  file_watch watch({path("file")});
  fs::remove(path("file"));
  EXPECT_EQ(changes(watch, 0s, 5s), 0);
}

TEST_F(FileWatch, AFileThatComesBackAsAnotherIsAChange) {
  file_watch watch({path("file")});
  fs::remove(path("file"));
  EXPECT_EQ(changes(watch, 0s, 2s), 0);
  write("file", "other");
  EXPECT_EQ(changes(watch, 3s, 6s), 1);
}

TEST_F(FileWatch, AFileMovedAwayAndBackUnchangedIsOneChangeAtMost) {
  file_watch watch({path("file")});
  fs::rename(path("file"), path("aside"));
  EXPECT_EQ(changes(watch, 0s, 2s), 0);
  fs::rename(path("aside"), path("file"));
  // A rename sets the time of the last status change, on most file systems.
  EXPECT_LE(changes(watch, 3s, 6s), 1);
}

TEST_F(FileWatch, AFileThatAppearsIsAChange) {
  file_watch watch({path("ca.crt")});
  EXPECT_EQ(changes(watch, 0s, 2s), 0);
  write("ca.crt", "pem");
  EXPECT_EQ(changes(watch, 3s, 6s), 1);
}

TEST_F(FileWatch, OtherPermissionsAreAChange) {
  file_watch watch({path("file")});
  fs::permissions(path("file"), fs::perms::owner_read);
  EXPECT_EQ(changes(watch, 0s, 5s), 1);
}

TEST_F(FileWatch, AChangeTakenBackWithinTheSecondIsNone) {
  fs::create_symlink("file", path("link"));
  write("other", "bb");
  file_watch watch({path("link")});
  fs::remove(path("link"));
  fs::create_symlink("other", path("link"));
  EXPECT_EQ(changes(watch, 0s, 500ms), 0);
  fs::remove(path("link"));
  fs::create_symlink("file", path("link"));
  EXPECT_EQ(changes(watch, 600ms, 5s), 0);
}

TEST_F(FileWatch, FilesThatBelongTogetherAreOneChangeOnceBothAreQuiet) {
  write("key", "k");
  file_watch watch({path("file"), path("key")});
  write("file", "new certificate");
  EXPECT_EQ(changes(watch, 0s, 900ms), 0);
  write("key", "new key");
  EXPECT_EQ(changes(watch, 1s, 1900ms), 0);
  EXPECT_EQ(changes(watch, 2s, 8s), 1);
}

TEST_F(FileWatch, EveryChangeIsReported) {
  file_watch watch({path("file")});
  write("file", "bb");
  EXPECT_EQ(changes(watch, 0s, 2s), 1);
  write("file", "ccc");
  EXPECT_EQ(changes(watch, 3s, 5s), 1);
}

TEST_F(FileWatch, EmptyPathsArePassedBy) {
  file_watch watch({"", path("file"), ""});
  EXPECT_EQ(changes(watch, 0s, 2s), 0);
  write("file", "bb");
  EXPECT_EQ(changes(watch, 3s, 5s), 1);
}

TEST_F(FileWatch, AShorterSettleTimeIsKept) {
  file_watch watch({path("file")}, 300ms);
  write("file", "bb");
  EXPECT_EQ(changes(watch, 0s, 200ms), 0);
  EXPECT_EQ(changes(watch, 300ms, 300ms), 1);
}

}  // namespace
}  // namespace kubelane::config
