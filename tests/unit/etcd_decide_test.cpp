#include "etcd/decide.hpp"
#include "etcd/domains.hpp"
#include "etcd/report.hpp"
#include "etcd_survey_driver.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::etcd {
namespace {

using health::quorum::standing;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

decision remove(const survey_of& survey, const std::string& name) {
  const auto view = survey.view();
  return decide(view, **find_member(view, name), intent::remove, "");
}

decision without(const survey_of& survey, const std::string& name) {
  const auto view = survey.view();
  return decide(view, **find_member(view, name), intent::without, "");
}

std::vector<std::string> whats(const decision& of) {
  std::vector<std::string> result;
  for (const auto& one : of.steps) result.push_back(one.what);
  return result;
}

TEST(EtcdDecide, AFollowerOfAHealthyClusterMayGo) {
  const survey_of three(3);
  EXPECT_TRUE(without(three, "e2").safe);
  EXPECT_EQ(without(three, "e2").after, (standing{3, 2}));
  EXPECT_TRUE(remove(three, "e2").safe);
  EXPECT_EQ(remove(three, "e2").after, (standing{2, 2}));
}

TEST(EtcdDecide, TheLeaderIsMovedFirst) {
  const auto removal = remove(survey_of(3), "e1");
  EXPECT_FALSE(removal.safe);
  EXPECT_THAT(removal.reasons, ElementsAre(HasSubstr("it leads")));
  EXPECT_THAT(whats(removal),
              ElementsAre("move the leader to e2", "remove e1", HasSubstr("verify: e1 is gone")));
  EXPECT_EQ(removal.steps[0].command,
            "ETCDCTL_ENDPOINTS=https://10.0.0.1:2379 etcdctl move-leader 2");
  EXPECT_EQ(
      removal.steps[1].command,
      "ETCDCTL_ENDPOINTS=https://10.0.0.2:2379,https://10.0.0.3:2379 etcdctl member remove 1");
  EXPECT_FALSE(without(survey_of(3), "e1").safe);
  EXPECT_THAT(without(survey_of(3), "e1").steps[0].command, HasSubstr("move-leader 2"));
}

TEST(EtcdDecide, TheLeaderMovesToTheMemberThatIsLeastBehind) {
  auto survey = survey_of(3);
  survey.status(2).applied_index -= 20;
  EXPECT_EQ(remove(survey, "e1").steps[0].what, "move the leader to e3");
}

TEST(EtcdDecide, OneAtATime) {
  const auto survey = survey_of(5).silent(4);
  EXPECT_THAT(without(survey, "e2").reasons, ElementsAre(HasSubstr("e4 is down: one at a time")));
  EXPECT_THAT(remove(survey, "e2").reasons, ElementsAre(HasSubstr("or remove it first")));
  EXPECT_TRUE(remove(survey, "e4").safe);
  EXPECT_TRUE(without(survey, "e4").safe) << "it is down already";
}

TEST(EtcdDecide, AMemberThatCatchesUpIsWaitedFor) {
  auto survey = survey_of(3);
  survey.status(3).applied_index = 100;
  EXPECT_THAT(without(survey, "e2").reasons, ElementsAre(HasSubstr("e3 is behind")));
}

TEST(EtcdDecide, ALivingMemberBesideADeadOneWouldLoseQuorum) {
  const auto survey = survey_of(3).silent(3);
  EXPECT_THAT(remove(survey, "e2").reasons,
              Contains(HasSubstr("of the 2 members left, 1 would answer")));
  EXPECT_THAT(without(survey, "e2").reasons,
              Contains(HasSubstr("without it 1 of 3 up: quorum is lost")));
  EXPECT_TRUE(remove(survey, "e3").safe);
}

TEST(EtcdDecide, TwoMembersTolerateNone) {
  EXPECT_FALSE(without(survey_of(2), "e2").safe);
  EXPECT_TRUE(remove(survey_of(2), "e2").safe);
  EXPECT_FALSE(without(survey_of(1), "e1").safe);
  EXPECT_THAT(remove(survey_of(1), "e1").reasons, ElementsAre(HasSubstr("it is the only member")));
}

TEST(EtcdDecide, WithoutAQuorumNobodyGoes) {
  const auto survey = survey_of(3).silent(2).silent(3);
  for (const char* name : {"e1", "e2", "e3"}) {
    EXPECT_FALSE(without(survey, name).safe) << name;
    EXPECT_THAT(remove(survey, name).reasons, ElementsAre(HasSubstr("there is no quorum now")));
  }
  EXPECT_THAT(without(survey_of(3).follow({1, 2, 3}, nobody, 5), "e1").reasons,
              ElementsAre(HasSubstr("no member has a leader")));
}

TEST(EtcdDecide, NothingIsDoneDuringAnElection) {
  auto survey = survey_of(3);
  survey.answers.leader_changed = true;
  EXPECT_THAT(without(survey, "e2").reasons, ElementsAre(HasSubstr("no leader is settled")));
  EXPECT_FALSE(without(survey_of(3).silent(1), "e1").safe) << "the others still follow it";
}

TEST(EtcdDecide, AlarmsAndDisagreementComeFirst) {
  auto survey = survey_of(3);
  survey.answers.alarms = {{3, "NOSPACE"}};
  EXPECT_THAT(without(survey, "e2").reasons, ElementsAre(HasSubstr("NOSPACE at e3")));
  survey.answers.alarms = {{3, "CORRUPT"}};
  EXPECT_FALSE(remove(survey, "e2").safe);
  EXPECT_TRUE(remove(survey, "e3").safe) << "that is the cure";
  survey.answers.alarms = {};
  survey.at(3).members->pop_back();
  EXPECT_THAT(without(survey, "e2").reasons, ElementsAre(HasSubstr("another list")));
}

TEST(EtcdDecide, AWrongClockKeepsNobodyFromRebooting) {
  auto survey = survey_of(3);
  using namespace std::chrono_literals;
  for (const int number : {1, 2, 3}) survey.at(number).clock = clock_offset{0ms, 1000ms};
  survey.at(2).clock = clock_offset{60'000ms, 61'000ms};
  EXPECT_EQ(survey.view().is, verdict::degraded);
  EXPECT_TRUE(without(survey, "e2").safe);
}

TEST(EtcdDecide, ALearnerMayAlwaysGo) {
  const auto survey = survey_of(4).list_as_learner(4).silent(2);
  EXPECT_TRUE(remove(survey, "e4").safe);
  EXPECT_TRUE(without(survey, "e4").safe);
  EXPECT_EQ(remove(survey, "e4").after, (standing{3, 2}));
}

TEST(EtcdDecide, WhatIsLeftIsNoted) {
  EXPECT_THAT(remove(survey_of(5), "e2").notes,
              ElementsAre("leaves 4 voters, which tolerate 1 failure instead of 2",
                          HasSubstr("go on to an odd one")));
  EXPECT_THAT(remove(survey_of(4), "e2").notes, IsEmpty());
  EXPECT_THAT(remove(survey_of(3), "e2").notes,
              Contains("leaves 2 voters, which tolerate no failure instead of 1"));
}

TEST(EtcdDecide, MembersAreFoundByNameAndId) {
  auto survey = survey_of(3);
  const auto view = survey.view();
  EXPECT_EQ((*find_member(view, "e3"))->listed.id, 3U);
  EXPECT_EQ((*find_member(view, "3"))->listed.id, 3U);
  EXPECT_EQ(find_member(view, "e9").error(), "no member is called e9; there are e1, e2, e3");
  for (auto& one : survey.answers.endpoints) (*one.members)[1].name = "e1";
  EXPECT_EQ(find_member(survey.view(), "e1").error(),
            "two members are called e1; give one's ID: 1 or 2");
}

TEST(EtcdDomains, ALossIsCountedOnTopOfWhatIsDown) {
  auto view = survey_of(5).silent(5).view();
  const auto losses = lose_domains(view, {{"a", {"e1", "e2"}}, {"b", {"e3", "e4"}}, {"c", {"e5"}}});
  ASSERT_TRUE(losses) << losses.error();
  EXPECT_EQ((*losses)[0].now, (standing{5, 2}));
  EXPECT_TRUE((*losses)[0].survives) << "while all others are up";
  EXPECT_EQ((*losses)[2].now, (standing{5, 4}));
}

TEST(EtcdDomains, ADomainWhoseLossStopsWritesIsANotice) {
  auto view = survey_of(3).view();
  ASSERT_TRUE(lose_domains(view, {{"a", {"e1", "e2"}}, {"b", {"e3"}}}));
  EXPECT_THAT(rules(view), ElementsAre("domain-loses-quorum"));
  EXPECT_EQ(view.is, verdict::healthy);
}

TEST(EtcdDomains, WhoIsNowhereOrTwiceIsNamed) {
  auto view = survey_of(3).view();
  ASSERT_TRUE(lose_domains(view, {{"a", {"e1"}}}));
  EXPECT_THAT(view.problems.back().message, HasSubstr("e2, e3 are in no domain"));
  EXPECT_EQ(lose_domains(view, {{"a", {"e1"}}, {"b", {"e1"}}}).error(),
            "e1 is in two domains, a and b");
  EXPECT_THAT(lose_domains(view, {{"a", {"x"}}}).error(), HasSubstr("no member is called x"));
}

TEST(EtcdDomains, AreWrittenAsNameEqualsMembers) {
  const auto good = parse_domain("a=e1+e2");
  ASSERT_TRUE(good);
  EXPECT_EQ(good->name, "a");
  EXPECT_THAT(good->members, ElementsAre("e1", "e2"));
  for (const char* bad : {"a", "=e1", "a=", "a=e1+", "a=+e1"})
    EXPECT_FALSE(parse_domain(bad)) << bad;
}

// kubespray calls them etcd1, etcd2, ...; the inventory has the hosts' names and addresses.
TEST(EtcdDomains, AnInventorysHostsAreFoundByNameOrAddress) {
  const auto view = survey_of(3).view();
  const auto domains = place(view, {{"node1", "10.0.0.1", "a"},
                                    {"node2", "10.0.0.2", "b"},
                                    {"e3", "10.7.7.7", "a"},
                                    {"node4", "10.0.0.4", "c"}});
  ASSERT_EQ(domains.size(), 2U);
  EXPECT_THAT(domains[0].members, ElementsAre("e1", "e3"));
  EXPECT_THAT(domains[1].members, ElementsAre("e2"));
}

TEST(EtcdReport, TheExitStatusIsThatOfTheVerdictOrOfTheDecision) {
  const survey_of three(3);
  EXPECT_EQ(exit_status_of(three.view(), std::nullopt), 0);
  EXPECT_EQ(exit_status_of(survey_of(3).silent(2).view(), std::nullopt), 1);
  EXPECT_EQ(exit_status_of(survey_of(3).silent(2).silent(3).view(), std::nullopt), 2);
  EXPECT_EQ(exit_status_of(judge({}), std::nullopt), 3);
  EXPECT_EQ(exit_status_of(three.view(), without(three, "e1")), 1);
  EXPECT_EQ(exit_status_of(three.view(), without(three, "e2")), 0);
  EXPECT_EQ(exit_status_of(survey_of(3).silent(2).view(), remove(survey_of(3).silent(2), "e2")), 0);
}

TEST(EtcdReport, TheTextAnswersFirst) {
  const auto survey = survey_of(3).silent(2);
  report of{.view = survey.view(), .domains = {}, .asked = remove(survey, "e3"), .exit_status = 1};
  const auto text = report_text(of);
  EXPECT_EQ(text.rfind("etcd: DEGRADED; voters: 2 of 3 up: one more failure loses quorum\n", 0), 0U)
      << text;
  EXPECT_THAT(text, HasSubstr("e1      1   leader  up     0    2.0 KiB (1.0 KiB)"));
  EXPECT_THAT(text, HasSubstr("NOT NOW: remove e3\n  - of the 2 members left"));
  EXPECT_THAT(text, HasSubstr("warning: member-down: e2 does not answer"));
}

TEST(EtcdReport, TheTableSaysWhoMustNotBeTouched) {
  report of{.view = survey_of(3).view(), .domains = {}, .asked = {}};
  EXPECT_THAT(report_text(of), HasSubstr("3.4.23   leader first  leader first  https://10.0.0.1"));
  EXPECT_THAT(report_text(of), HasSubstr("3.4.23   yes           yes           https://10.0.0.2"));
}

TEST(EtcdReport, TheJsonHasTheDocumentedShape) {
  auto survey = survey_of(3).silent(3);
  survey.answers.alarms = {{2, "NOSPACE"}};
  report of{.view = survey.view(), .domains = {}, .asked = remove(survey, "e3"), .exit_status = 1};
  of.domains = *lose_domains(of.view, {{"a", {"e1", "e2", "e3"}}});
  const auto parsed = boost::json::parse(report_json(of));
  EXPECT_EQ(parsed.at("verdict").as_string(), "degraded");
  EXPECT_EQ(parsed.at("exit_status").to_number<int>(), 1);
  EXPECT_EQ(parsed.at("cluster_id").as_string(), "c1");
  EXPECT_EQ(parsed.at("leader").as_string(), "e1");
  EXPECT_EQ(parsed.at("quorum").at("spare").to_number<int>(), 0);
  const auto& second = parsed.at("members").at(1);
  EXPECT_EQ(second.at("name").as_string(), "e2");
  EXPECT_EQ(second.at("alarms").at(0).as_string(), "NOSPACE");
  EXPECT_FALSE(second.at("may_be_removed").as_bool());
  EXPECT_TRUE(parsed.at("members").at(2).at("db_size").is_null());
  EXPECT_EQ(parsed.at("problems").at(0).at("rule").as_string(), "member-down");
  EXPECT_FALSE(parsed.at("domains").at(0).at("survives").as_bool());
  EXPECT_EQ(parsed.at("decision").at("kind").as_string(), "remove");
  EXPECT_FALSE(parsed.at("decision").at("safe").as_bool()) << "an alarm is raised";
  EXPECT_EQ(parsed.at("decision").at("quorum").at("after").at("members").to_number<int>(), 2);
}

}  // namespace
}  // namespace kubelane::etcd
