#include "proxy/kept_table.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace kubelane::proxy {
namespace {

net::endpoint at(const char* text) {
  return *net::parse_endpoint(text, 0);
}

/// The same table as the next process sees it.
kept_table reopened(const kept_table& table) {
  auto again = kept_table::open(fcntl(table.descriptor(), F_DUPFD_CLOEXEC, 0));
  EXPECT_TRUE(again);
  return std::move(*again);
}

// Versions before and after this one read it too: a place that moves ends every connection of a
// fleet at its next upgrade.
TEST(KeptTable, ItsLayoutIsThatOfTheFirstVersion) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  auto* const record = table->add();
  record->flags = 0x01020304;
  record->set_upstream(at("10.1.2.3:6443"));
  record->accepted = 0x1122334455667788;
  record->client = 0xa1;
  record->server = 0xa2;
  record->up = 0xa3;
  record->down = 0xa4;
  table->publish(*record);
  std::array<unsigned char, 256> raw{};
  ASSERT_EQ(pread(table->descriptor(), raw.data(), raw.size(), 0), 256);
  const auto expect = [&raw](std::size_t place, std::initializer_list<unsigned> bytes) {
    for (const auto byte : bytes) {
      EXPECT_EQ(raw[place], byte) << "at " << place;
      ++place;
    }
  };
  expect(0, {'e', 'n', 'a', 'l', 'e', 'b', 'u', 'k'});
  expect(8, {1, 0, 0, 0, 128, 0, 0, 0, 0, 4, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0});
  expect(128, {1, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 0, 0, 0, 0, 10, 1, 2, 3, 0, 0});
  expect(160, {0x2b, 0x19, 4, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11});
  expect(176, {0xa1, 0, 0, 0, 0, 0, 0, 0, 0xa2, 0, 0, 0, 0, 0, 0, 0});
  expect(192, {0xa3, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0, 0, 0, 0, 0, 0, 0});
}

TEST(KeptTable, TheBitsOfItsFlagsAreThoseOfTheFirstVersion) {
  using record = kept_record;
  const std::vector<std::uint32_t> bits = {record::remote_client, record::told_client,
                                           record::told_server,   record::client_broken,
                                           record::server_broken, record::server_ended_first,
                                           record::leaving,       record::ended,
                                           record::aborted,       record::busy};
  for (std::size_t i = 0; i < bits.size(); ++i) EXPECT_EQ(bits[i], 1U << i);
}

TEST(KeptTable, TheNextProcessFindsARecordByItsName) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  auto* const record = table->add();
  record->client = 17;
  table->publish(*record);
  auto again = reopened(*table);
  ASSERT_NE(again.find(record->name()), nullptr);
  EXPECT_EQ(again.find(record->name())->client, 17U);
}

TEST(KeptTable, ARecordThatWasNotPublishedIsNotThere) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  auto* const record = table->add();
  EXPECT_EQ(record->id, 0U);
  EXPECT_EQ(table->add(), record) << "the place is still free";
}

TEST(KeptTable, NamesAreShortAndNeverUsedTwice) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  std::string last;
  for (int i = 0; i < 300; ++i) {
    auto* const record = table->add();
    table->publish(*record);
    EXPECT_NE(record->name(), last);
    EXPECT_LE(record->name().size(), 14U);
    last = record->name();
    table->remove(*record);
    EXPECT_EQ(table->find(last), nullptr);
  }
}

TEST(KeptTable, FindsNothingForOtherNames) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  table->publish(*table->add());
  for (const char* name :
       {"", "c", "c0", "c01x", "x1", "c-1", "c100000000000", "connections", "l0"})
    EXPECT_EQ(table->find(name), nullptr) << name;
  EXPECT_NE(table->find("c1"), nullptr);
}

TEST(KeptTable, IsFullAtItsLimitAndHasRoomAgainAfterARemoval) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  kept_record* last = nullptr;
  for (std::size_t i = 0; i < kept_table::places; ++i) {
    last = table->add();
    ASSERT_NE(last, nullptr);
    table->publish(*last);
  }
  EXPECT_EQ(table->add(), nullptr);
  table->remove(*last);
  EXPECT_EQ(table->add(), last);
}

TEST(KeptTable, KeepsOnlyThoseThatAreNamed) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  for (int i = 0; i < 3; ++i) table->publish(*table->add());
  const std::array<const kept_record*, 1> kept = {table->find("c2")};
  table->remove_all_but(kept);
  EXPECT_EQ(table->find("c1"), nullptr);
  EXPECT_NE(table->find("c2"), nullptr);
  EXPECT_EQ(table->find("c3"), nullptr);
}

TEST(KeptTable, UpstreamsOfBothFamiliesComeBackAsTheyWere) {
  for (const char* text : {"10.0.0.11:6443", "[fd00::13]:6443", "[fe80::1%3]:1"}) {
    kept_record record;
    record.set_upstream(at(text));
    EXPECT_EQ(record.upstream(), at(text)) << text;
  }
  EXPECT_FALSE(kept_record{}.upstream());
  kept_record odd;
  odd.port = 1;
  odd.family = 9;
  EXPECT_FALSE(odd.upstream());
}

TEST(KeptTable, RefusesWhatIsNone) {
  const int file = memfd_create("short", MFD_CLOEXEC);
  EXPECT_FALSE(kept_table::open(file));  // closes it
  const int empty = memfd_create("empty", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(empty, (kept_table::places + 1) * sizeof(kept_record)), 0);
  EXPECT_FALSE(kept_table::open(empty));
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  EXPECT_FALSE(kept_table::open(ends[0]));
  close(ends[1]);
  EXPECT_FALSE(kept_table::open(-1));
}

TEST(KeptTable, RefusesAnotherLayout) {
  auto table = kept_table::create();
  ASSERT_TRUE(table);
  const std::uint32_t newer = 2;
  ASSERT_EQ(pwrite(table->descriptor(), &newer, sizeof newer, 8), 4);
  EXPECT_FALSE(kept_table::open(fcntl(table->descriptor(), F_DUPFD_CLOEXEC, 0)));
}

}  // namespace
}  // namespace kubelane::proxy
