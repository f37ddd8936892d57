#include "config/load.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kubelane::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> lines(const load_result& result) {
  std::vector<std::string> found;
  if (!result)
    for (const auto& each : result.error().list)
      found.push_back(describe("f", each, severity::error));
  return found;
}

std::vector<std::string> errors(std::string_view yaml) {
  return lines(load(yaml));
}

std::string repeated(std::string_view text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

constexpr auto good =
    "version: 1\n"
    "upstreams:\n"
    "  - {name: cp1, address: 10.0.0.11}\n";

TEST(ConfigDocument, AnEmptyFileIsRefused) {
  for (const auto* text : {"", "\n\n", "# only a comment\n", "---\n", "~"})
    EXPECT_THAT(errors(text), ElementsAre("f:1:1: file: is empty: `upstreams` is required"));
}

TEST(ConfigDocument, AFileCutInTheMiddleIsRefusedAtItsEnd) {
  EXPECT_THAT(errors("version: 1\nlisten: [127.0.0.1:64"),
              ElementsAre("f:2:22: yaml: end of sequence flow not found: the file ends too early"));
  EXPECT_THAT(errors("upstreams:\n  - {name: cp1, addr"),
              ElementsAre("f:2:21: yaml: end of map flow not found: the file ends too early"));
  EXPECT_THAT(
      errors("upstreams:\n  - {address: \"10.0."),
      ElementsAre(HasSubstr("f:2:21: yaml: illegal EOF in scalar: the file ends too early")));
  EXPECT_THAT(errors("upstreams:\n  - {name: cp1, address:\n"),
              ElementsAre(HasSubstr("the file ends too early")));
}

TEST(ConfigDocument, ASyntaxErrorHasItsLineAndColumn) {
  EXPECT_THAT(errors("version: 1\nupstreams: [}\n# end\n"),
              ElementsAre(HasSubstr("f:2:13: yaml: ")));
  EXPECT_THAT(errors("version: 1\nhealth:\n\tfall: 3\nzone: a\n"),
              ElementsAre(HasSubstr("f:3:6: yaml: ")));
}

TEST(ConfigDocument, ATabInTheIndentIsExplained) {
  EXPECT_THAT(errors("upstreams:\n\t- address: 10.0.0.1\n"),
              ElementsAre(HasSubstr("; indent with spaces, not tabs")));
}

TEST(ConfigDocument, AnIpv6AddressWithoutQuotesIsExplained) {
  EXPECT_THAT(errors("listen: [::1]:6443\nupstreams: []\n"),
              ElementsAre(HasSubstr("; an IPv6 address needs quotes, as \"[fd00::13]:6443\"")));
}

TEST(ConfigDocument, ARepeatedKeyIsRefusedWithTheLineOfTheFirst) {
  EXPECT_THAT(errors(std::string(good) + "health: {fall: 3, fall: 4}\nversion: 1\n"),
              ElementsAre("f:4:19: health.fall: is given twice, first on line 4",
                          "f:5:1: version: is given twice, first on line 1"));
}

TEST(ConfigDocument, TextThatIsNotUtf8IsRefusedWhereItIs) {
  EXPECT_THAT(errors("version: 1\nzone: \"\xe9t\xe9\"\n"),
              ElementsAre("f:2:8: file: is not UTF-8 here: save it as UTF-8"));
  // Overlong, surrogate, beyond Unicode, cut.
  for (const auto* text : {"\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80", "\xf5", "\xe2\x82", "\x80"})
    EXPECT_THAT(errors(text), ElementsAre("f:1:1: file: is not UTF-8 here: save it as UTF-8"));
  EXPECT_THAT(errors(std::string_view("\xff\xfev\0", 4)),
              ElementsAre("f:1:1: file: is UTF-16: save it as UTF-8"));
}

TEST(ConfigDocument, Utf8InCommentsAndAByteOrderMarkAreTaken) {
  EXPECT_THAT(
      errors(std::string("\xef\xbb\xbf# gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x84\n") +
             good),
      IsEmpty());
}

TEST(ConfigDocument, ControlCharactersAreRefused) {
  // 0x04 ends the text for the YAML library, which would hide what follows.
  EXPECT_THAT(errors("version: 1\n\x04zone: a\n"),
              ElementsAre("f:2:1: file: has a control character here: is it a text file?"));
  EXPECT_THAT(errors(std::string_view("version: 1\n\0", 12)),
              ElementsAre("f:2:1: file: has a control character here: is it a text file?"));
}

TEST(ConfigDocument, WindowsLineEndsAreTaken) {
  EXPECT_THAT(errors("version: 1\r\nupstreams:\r\n  - address: 10.0.0.1\r\n"), IsEmpty());
}

TEST(ConfigDocument, AliasesAreRefused) {
  EXPECT_THAT(errors(std::string(good) + "dial: &a {hedge_after: 1s}\nfailover: *a\n"),
              ElementsAre("f:5:11: failover: aliases are not supported: write the value out"));
}

TEST(ConfigDocument, AnAliasBombCostsNothing) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 60; ++i) {
    const auto before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            ", " + before + "]\n";
  }
  EXPECT_FALSE(errors(bomb).empty());
}

TEST(ConfigDocument, TagsAreRefused) {
  EXPECT_THAT(errors("version: !!int 1\nupstreams: [{address: 10.0.0.1}]"),
              ElementsAre(HasSubstr("f:1:10: version: tags are not supported")));
}

TEST(ConfigDocument, KeysThatAreNoTextAreRefused) {
  EXPECT_THAT(errors(std::string(good) + "? [a, b]\n: 1\n"),
              ElementsAre("f:4:3: file: a key must be text"));
}

TEST(ConfigDocument, ASecondDocumentIsRefused) {
  EXPECT_THAT(errors(std::string(good) + "---\nzone: a\n"),
              ElementsAre("f:4:1: yaml: a second document starts here: only one is allowed"));
}

TEST(ConfigDocument, AListOrTextAtTheTopIsRefused) {
  EXPECT_THAT(errors("- a\n"), ElementsAre("f:1:1: file: is a list, not a mapping of keys"));
  EXPECT_THAT(errors("hello"), ElementsAre("f:1:1: file: is text, not a mapping of keys"));
}

TEST(ConfigDocument, DeepNestingIsRefused) {
  for (const auto* opening : {"[", "{", "{a: ", "- ", "? ", "[{"})
    EXPECT_THAT(errors(repeated(opening, 20'000)),
                ElementsAre(HasSubstr("yaml: nested more than 16 levels deep")));
}

TEST(ConfigDocument, MoreThanAMebibyteIsRefused) {
  EXPECT_THAT(errors(std::string(1024 * 1024 + 1, '#')),
              ElementsAre("f:1:1: file: is larger than 1 MiB"));
}

TEST(ConfigDocument, RubbishIsCutShort) {
  std::string keys;
  for (int i = 0; i < 5000; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(errors(keys),
              ElementsAre(HasSubstr("file: has 5000 keys"), HasSubstr("upstreams: is missing")));
  EXPECT_EQ(errors(repeated("? [a]\n", 5000)).size(), 1001u);
}

TEST(ConfigDocument, HostileTextIsShownSafelyAndShort) {
  const auto found =
      errors(std::string(good) + "\"a\\nb\\e\": 1\nbalance: " + std::string(5000, 'x') + "\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], HasSubstr(": \"a\\x0ab\\x1b\": unknown key"));
  EXPECT_LT(found[1].size(), 200u);
}

/// Root may read everything.
struct not_root {
  const uid_t before = ::geteuid();
  not_root() { EXPECT_EQ(before == 0 ? ::seteuid(65534) : 0, 0); }
  ~not_root() { EXPECT_EQ(::seteuid(before), 0); }
};

class ConfigFile : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  std::string file_of(const std::string& text) const {
    return folder_.write("kubelane.yaml", text);
  }

 private:
  test::temporary_folder folder_;
};

TEST_F(ConfigFile, IsReadLikeItsText) {
  EXPECT_TRUE(load_file(file_of(good)));
}

TEST_F(ConfigFile, MissingIsRefused) {
  EXPECT_THAT(lines(load_file(path("none"))),
              ElementsAre("f:1:1: file: cannot be opened: No such file or directory"));
}

TEST_F(ConfigFile, ADirectoryIsRefused) {
  EXPECT_THAT(lines(load_file(path(""))), ElementsAre("f:1:1: file: is a directory, not a file"));
}

TEST_F(ConfigFile, WithoutPermissionIsRefused) {
  const auto file = file_of(good);
  ASSERT_EQ(::chmod(path("").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(file.c_str(), 0), 0);
  const not_root lowered;
  EXPECT_THAT(lines(load_file(file)),
              ElementsAre("f:1:1: file: cannot be opened: Permission denied"));
}

TEST_F(ConfigFile, AFifoIsRefusedWithoutWaitingForAWriter) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(lines(load_file(path("fifo"))), ElementsAre("f:1:1: file: is not a regular file"));
}

TEST_F(ConfigFile, LargerThanAMebibyteIsRefused) {
  EXPECT_THAT(lines(load_file(file_of(std::string(2 * 1024 * 1024, '#')))),
              ElementsAre("f:1:1: file: is larger than 1 MiB"));
}

}  // namespace
}  // namespace kubelane::config
