// What a real etcd 3.4 answered (tests/etcd/record), and what nobody should.

#include "etcd/answers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace kubelane::etcd {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

std::string recorded(const std::string& name) {
  std::ifstream file(KUBELANE_SOURCE "/tests/etcd/answers/" + name + ".json");
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(EtcdAnswers, AStatusIsReadWhole) {
  const auto status = parse_status(recorded("status"));
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(status->id, 6309049492350743397U);
  EXPECT_EQ(status->cluster, 16798251765429083068U);
  EXPECT_NE(status->leader, nobody);
  EXPECT_GT(status->raft_index, 0U);
  EXPECT_EQ(status->raft_index, status->applied_index);
  EXPECT_GE(status->term, 2U);
  EXPECT_EQ(status->version.substr(0, 4), "3.4.");
  EXPECT_GE(status->db_size, status->db_size_in_use);
  EXPECT_GT(status->db_size_in_use, 0U);
  EXPECT_FALSE(status->is_learner);
  EXPECT_TRUE(status->alarms.empty());
}

TEST(EtcdAnswers, NoLeaderIsLeftOut) {
  const auto status = parse_status(recorded("status-no-leader"));
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(status->leader, nobody);
}

TEST(EtcdAnswers, AStatusNamesAlarms) {
  const auto status = parse_status(recorded("status-no-space"));
  ASSERT_TRUE(status) << status.error();
  EXPECT_THAT(status->alarms, ElementsAre(Field(&alarm::kind, "NOSPACE")));
  EXPECT_NE(status->alarms.front().member, nobody);
}

TEST(EtcdAnswers, ALearnerSaysThatItIsOne) {
  const auto status = parse_status(recorded("status-learner"));
  ASSERT_TRUE(status) << status.error();
  EXPECT_TRUE(status->is_learner);
}

TEST(EtcdAnswers, AListHasMembersWithTheirUrls) {
  const auto members = parse_members(recorded("members"));
  ASSERT_TRUE(members) << members.error();
  ASSERT_EQ(members->size(), 3U);
  EXPECT_EQ((*members)[1], (listed_member{6309049492350743397U,
                                          "e1",
                                          {"https://10.79.0.11:2380"},
                                          {"https://10.79.0.11:2379"},
                                          false}));
}

TEST(EtcdAnswers, AMemberThatNeverStartedHasNoNameAndNoClientUrl) {
  const auto members = parse_members(recorded("members-not-started"));
  ASSERT_TRUE(members) << members.error();
  const auto nameless = std::find_if(members->begin(), members->end(),
                                     [](const listed_member& one) { return one.name.empty(); });
  ASSERT_NE(nameless, members->end());
  EXPECT_TRUE(nameless->client_urls.empty());
  EXPECT_TRUE(nameless->is_learner);
}

TEST(EtcdAnswers, AlarmsAreListed) {
  const auto none = parse_alarms(recorded("alarms-none"));
  ASSERT_TRUE(none) << none.error();
  EXPECT_TRUE(none->empty());
  const auto raised = parse_alarms(recorded("alarms-no-space"));
  ASSERT_TRUE(raised) << raised.error();
  EXPECT_THAT(*raised, ElementsAre(Field(&alarm::kind, "NOSPACE")));
  EXPECT_NE(raised->front().member, nobody);
}

TEST(EtcdAnswers, WhatIsNotAsExpectedIsNamed) {
  EXPECT_EQ(parse_status("").error(), "the answer is not JSON");
  EXPECT_EQ(parse_status("[]").error(), "the answer is not etcd's: the answer is no object");
  EXPECT_EQ(parse_status("{}").error(), "the answer is not etcd's: it has no header");
  EXPECT_EQ(parse_status(R"({"header": {}})").error(),
            "the answer is not etcd's: its header names no member");
  EXPECT_EQ(parse_status(R"({"header": {"member_id": "x"}})").error(),
            "the answer is not etcd's: member_id is no number");
  EXPECT_EQ(parse_status(R"({"header": {"member_id": "-1"}})").error(),
            "the answer is not etcd's: member_id is no number");
  EXPECT_EQ(parse_status(R"({"header": {"member_id": "1"}, "isLearner": "yes"})").error(),
            "the answer is not etcd's: isLearner is neither true nor false");
  EXPECT_EQ(parse_members("{}").error(), "the answer is not etcd's: it lists no members");
  EXPECT_EQ(parse_members(R"({"members": [{"name": "e1"}]})").error(),
            "the answer is not etcd's: a member has no ID");
  EXPECT_EQ(parse_members(R"({"members": [{"ID": "1", "peerURLs": [2]}]})").error(),
            "the answer is not etcd's: peerURLs holds more than text");
  EXPECT_EQ(parse_alarms(R"({"alarms": {}})").error(),
            "the answer is not etcd's: alarms is no list");
}

TEST(EtcdAnswers, NumbersMayBeNumbers) {
  const auto status = parse_status(R"({"header": {"member_id": 7, "raft_term": 3}, "dbSize": 5})");
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(status->id, 7U);
  EXPECT_EQ(status->term, 3U);
  EXPECT_EQ(status->db_size, 5U);
}

TEST(EtcdAnswers, ARefusalSaysWhatWouldBeRight) {
  EXPECT_EQ(explain_refusal(503, "Service Unavailable", recorded("refused-by-learner")),
            "503 Service Unavailable: etcdserver: rpc not supported for learner");
  EXPECT_THAT(explain_refusal(404, "Not Found", "404 page not found\n"),
              HasSubstr("etcd before 3.4 has /v3beta"));
  EXPECT_THAT(explain_refusal(503, "", R"({"message": "connection closed"})"),
              HasSubstr("needs clientAuth besides serverAuth"));
  EXPECT_THAT(
      explain_refusal(503, "", R"({"message": "write tcp 10.0.0.1:1->10.0.0.1:2: broken pipe"})"),
      HasSubstr("needs clientAuth besides serverAuth"));
  EXPECT_EQ(explain_refusal(503, "", "<html>no server is available</html>"), "503");
  EXPECT_THAT(explain_refusal(403, "Forbidden", ""), HasSubstr("it wants a user"));
  EXPECT_EQ(explain_refusal(500, "", "{\"message\": \"a\\u001bb\"}"), "500: a b");
}

TEST(EtcdAnswers, AnIdIsWrittenAsEtcdctlDoes) {
  EXPECT_EQ(to_hex(6309049492350743397U), "578e3f1625ecb365");
  EXPECT_EQ(to_hex(10), "a");
}

}  // namespace
}  // namespace kubelane::etcd
