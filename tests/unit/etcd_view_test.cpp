#include "etcd/clocks.hpp"
#include "etcd_survey_driver.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::etcd {
namespace {

using namespace std::chrono_literals;
using health::quorum::standing;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(EtcdView, AHealthyClusterHasNoProblem) {
  const auto view = survey_of(3).view();
  EXPECT_EQ(view.is, verdict::healthy);
  EXPECT_EQ(view.leader, 1U);
  EXPECT_EQ(view.term, 5U);
  EXPECT_TRUE(view.settled);
  EXPECT_EQ(view.voters, (standing{3, 3}));
  EXPECT_THAT(rules(view), IsEmpty());
}

TEST(EtcdView, AMemberThatDoesNotAnswerIsDownWithTheReason) {
  const auto view = survey_of(3).silent(2).view();
  EXPECT_EQ(view.is, verdict::degraded);
  EXPECT_EQ(view.voters, (standing{3, 2}));
  EXPECT_THAT(rules(view), ElementsAre("member-down e2"));
  EXPECT_THAT(view.problems.front().message,
              HasSubstr("https://10.0.0.2:2379: connection refused"));
}

TEST(EtcdView, AMinorityThatAnswersIsNoQuorum) {
  auto survey = survey_of(3).silent(2).silent(3);
  EXPECT_EQ(survey.view().is, verdict::no_quorum);
  survey.follow({1}, nobody, 5);
  const auto view = survey.view();
  EXPECT_EQ(view.is, verdict::no_quorum);
  EXPECT_EQ(view.voters, (standing{3, 1}));
  EXPECT_EQ(view.members[0].state, member_state::leaderless);
  EXPECT_THAT(rules(view), ElementsAre("no-leader", "member-down e2", "member-down e3"));
}

TEST(EtcdView, AMajorityWithoutALeaderIsNoQuorumAndWorthAnotherLook) {
  const auto view = survey_of(3).follow({1, 2, 3}, nobody, 6).view();
  EXPECT_EQ(view.is, verdict::no_quorum);
  EXPECT_THAT(rules(view), ElementsAre("no-leader"));
  EXPECT_TRUE(is_unsettled(view));
  EXPECT_EQ(whom_to_ask(view), "");
  EXPECT_FALSE(is_unsettled(survey_of(3).silent(1).silent(2).follow({3}, nobody, 6).view()));
}

TEST(EtcdView, ASilentLeaderIsNotSettled) {
  const auto view = survey_of(3).silent(1, "no answer in time").view();
  EXPECT_EQ(view.is, verdict::degraded);
  EXPECT_FALSE(view.settled);
  EXPECT_THAT(rules(view), ElementsAre("leader-silent e1", "member-down e1"));
  EXPECT_EQ(whom_to_ask(view), survey_of::url(2));
}

TEST(EtcdView, TheHighestTermSaysWhoLeads) {
  const auto view = survey_of(3).follow({2, 3}, 2, 6).view();
  EXPECT_EQ(view.leader, 2U);
  EXPECT_EQ(view.term, 6U);
  EXPECT_EQ(view.members[0].state, member_state::cut_off);
  EXPECT_THAT(view.members[0].cause,
              HasSubstr("it follows e1 in term 5, the others are in term 6"));
  EXPECT_TRUE(is_unsettled(view));
}

TEST(EtcdView, AMemberWithoutTheOthersLeaderIsCutOffWhateverItsTerm) {
  const auto view = survey_of(3).follow({3}, nobody, 77).view();
  EXPECT_EQ(view.is, verdict::degraded);
  EXPECT_EQ(view.leader, 1U);
  EXPECT_EQ(view.voters, (standing{3, 2}));
  EXPECT_THAT(rules(view), ElementsAre("member-cut-off e3"));
}

TEST(EtcdView, AChangeOfLeaderWhileAskingIsSaid) {
  auto survey = survey_of(3);
  survey.answers.leader_changed = true;
  const auto view = survey.view();
  EXPECT_EQ(view.is, verdict::degraded);
  EXPECT_FALSE(view.settled);
  EXPECT_THAT(rules(view), ElementsAre("leader-changed e1"));
}

TEST(EtcdView, AnAgreementThatIsNotReachedIsSaid) {
  auto survey = survey_of(3);
  survey.answers.agreed = agreement{false, survey_of::url(1), "no answer in time"};
  EXPECT_THAT(rules(survey.view()), ElementsAre("no-agreement"));
  EXPECT_EQ(survey.view().is, verdict::degraded);
}

TEST(EtcdView, ALearnerDoesNotVote) {
  auto survey = survey_of(4).list_as_learner(4);
  EXPECT_EQ(survey.view().voters, (standing{3, 3}));
  EXPECT_EQ(survey.view().is, verdict::healthy);
  survey.silent(4);
  EXPECT_EQ(survey.view().voters, (standing{3, 3}));
  EXPECT_THAT(rules(survey.view()), ElementsAre("member-down e4"));
  EXPECT_THAT(survey.view().problems.front().message, HasSubstr("the learner e4"));
}

TEST(EtcdView, ALearnerNeedNotListTheMembers) {
  auto survey = survey_of(4).list_as_learner(4);
  survey.at(4).members.reset();
  survey.at(4).trouble = "503: etcdserver: rpc not supported for learner";
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

TEST(EtcdView, AMemberThatNeverStartedCountsForTheMajority) {
  auto survey = survey_of(3);
  for (auto& one : survey.answers.endpoints)
    one.members->push_back({9, "", {"https://10.0.0.9:2380"}, {}, false});
  const auto view = survey.view();
  EXPECT_EQ(view.voters, (standing{4, 3}));
  EXPECT_THAT(rules(view), ElementsAre("member-not-started 9", "even-members"));
}

TEST(EtcdView, EntriesBehindTheLeaderAreCounted) {
  auto survey = survey_of(3);
  survey.status(2).applied_index = 9'990;
  EXPECT_EQ(survey.view().members[1].lag, 10U);
  EXPECT_EQ(survey.view().is, verdict::healthy);
  survey.status(2).applied_index = 5'000;
  EXPECT_EQ(survey.view().members[1].state, member_state::behind);
  EXPECT_THAT(rules(survey.view()), ElementsAre("member-behind e2"));
  EXPECT_EQ(survey.view().voters, (standing{3, 3})) << "it votes all the same";
}

TEST(EtcdView, AlarmsComeFromAnyAnswerOnce) {
  auto survey = survey_of(3);
  survey.status(1).alarms = {{2, "NOSPACE"}};
  survey.status(3).alarms = {{2, "NOSPACE"}};
  survey.answers.alarms = {{2, "NOSPACE"}, {3, "CORRUPT"}};
  EXPECT_THAT(rules(survey.view()), ElementsAre("alarm e2", "alarm e3"));
  EXPECT_EQ(survey.view().is, verdict::degraded);
}

// It was cut off when it was removed: its own list still has it, and no leader.
TEST(EtcdView, ARemovedMemberThatRunsIsNoMember) {
  auto survey = survey_of(4);
  for (const int number : {1, 2, 3}) survey.at(number).members->pop_back();
  survey.follow({4}, nobody, 9);
  const auto view = survey.view();
  EXPECT_EQ(view.members.size(), 3U);
  EXPECT_EQ(view.voters, (standing{3, 3}));
  EXPECT_THAT(rules(view), ElementsAre("removed-member-runs 4"));
  EXPECT_EQ(view.is, verdict::degraded);
}

TEST(EtcdView, OneMemberUnderTwoAddressesIsOneMember) {
  auto survey = survey_of(3);
  auto again = survey.endpoint(1);
  again.url = "https://localhost:2379";
  survey.answers.endpoints.push_back(again);
  EXPECT_EQ(survey.view().voters, (standing{3, 3}));
  EXPECT_THAT(rules(survey.view()), ElementsAre("duplicate-endpoint e1"));
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

TEST(EtcdView, AnEndpointOfAnotherClusterIsNoMember) {
  auto survey = survey_of(3);
  auto other = survey.endpoint(2);
  other.url = "https://10.9.9.9:2379";
  other.status->cluster = 0xee;
  survey.answers.endpoints.push_back(other);
  EXPECT_EQ(survey.view().members.size(), 3U);
  EXPECT_THAT(rules(survey.view()), ElementsAre("other-cluster"));
}

TEST(EtcdView, AnEndpointThatIsNobodysAddressIsSaid) {
  auto survey = survey_of(3);
  endpoint_answers stray;
  stray.url = "https://10.9.9.9:2379";
  stray.trouble = "connection refused";
  survey.answers.endpoints.push_back(stray);
  EXPECT_THAT(rules(survey.view()), ElementsAre("endpoint-silent"));
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

TEST(EtcdView, MembersThatDisagreeOnTheListAreNamed) {
  auto survey = survey_of(4);
  survey.at(2).members->pop_back();
  (*survey.at(3).members)[3].is_learner = true;
  const auto view = survey.view();
  EXPECT_THAT(rules(view), ElementsAre("lists-differ e2", "lists-differ e3", "even-members"));
  EXPECT_THAT(view.problems[0].message, HasSubstr("without e4"));
  EXPECT_THAT(view.problems[1].message, HasSubstr("e4 as a learner"));
}

TEST(EtcdView, WithoutAnyListNothingIsKnown) {
  const auto view = survey_of(2).silent(1).silent(2).view();
  EXPECT_EQ(view.is, verdict::no_answer);
  EXPECT_THAT(rules(view), ElementsAre("endpoint-silent", "endpoint-silent"));
  EXPECT_EQ(judge({}).is, verdict::no_answer);
}

TEST(EtcdView, DifferentVersionsAreANotice) {
  auto survey = survey_of(3);
  survey.status(3).version = "3.5.9";
  EXPECT_THAT(rules(survey.view()), ElementsAre("versions-differ"));
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

TEST(EtcdView, MembersOnlyAListKnowsAreAskedToo) {
  auto survey = survey_of(3);
  const std::vector<endpoint_answers> one(survey.answers.endpoints.begin(),
                                          survey.answers.endpoints.begin() + 1);
  EXPECT_THAT(unasked(one), ElementsAre(survey_of::url(2), survey_of::url(3)));
  EXPECT_THAT(unasked(survey.silent(3).answers.endpoints), IsEmpty());
}

// One endpoint given as localhost: the member behind it is known by its ID.
TEST(EtcdView, AMemberThatAnsweredUnderAnotherAddressIsNotAskedAgain) {
  auto survey = survey_of(2);
  survey.at(1).url = "https://127.0.0.1:2379";
  EXPECT_THAT(unasked(survey.answers.endpoints), IsEmpty());
}

TEST(EtcdClocks, ADateBoundsTheOffset) {
  // 2026-11-30 16:18:24 UTC
  const auto sent = 1'796'055'503'900ms, received = 1'796'055'504'100ms;
  const auto offset = read_clock("Mon, 30 Nov 2026 16:18:24 GMT", sent, received);
  ASSERT_TRUE(offset);
  EXPECT_EQ(offset->low, -100ms);
  EXPECT_EQ(offset->high, 1100ms);
  EXPECT_FALSE(read_clock("yesterday", sent, received));
}

TEST(EtcdClocks, TheOneThatIsApartIsNamedAndNotTheOthers) {
  auto survey = survey_of(3);
  survey.at(1).clock = clock_offset{-100ms, 1000ms};
  survey.at(2).clock = clock_offset{-300'100ms, -299'000ms};
  survey.at(3).clock = clock_offset{-200ms, 900ms};
  const auto view = survey.view();
  EXPECT_EQ(view.is, verdict::degraded);
  ASSERT_THAT(rules(view), ElementsAre("clocks-apart e2"));
  EXPECT_EQ(view.members[1].clock_apart, -298'800ms);
  EXPECT_THAT(view.problems[0].message, HasSubstr("is at least 298.8 s behind the others'"));
}

TEST(EtcdClocks, OursMayBeWrong) {
  auto survey = survey_of(3);
  for (const int number : {1, 2, 3}) survey.at(number).clock = clock_offset{50'000ms, 51'000ms};
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

TEST(EtcdClocks, WholeSecondsHideLessThanOne) {
  auto survey = survey_of(3);
  survey.at(1).clock = clock_offset{0ms, 1000ms};
  survey.at(2).clock = clock_offset{900ms, 1900ms};
  survey.at(3).clock = clock_offset{1400ms, 2400ms};
  EXPECT_EQ(survey.view().is, verdict::healthy);
}

}  // namespace
}  // namespace kubelane::etcd
