#include "proxy/dial_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

std::string words(const dial_action& action) {
  const auto number = std::to_string(action.candidate);
  const auto result =
      action.result ? std::string(" ") + health::to_string(*action.result) : std::string();
  switch (action.what) {
    case dial_action::kind::drop:
      return "drop " + number + result;
    case dial_action::kind::relay:
      return "relay " + number;
    case dial_action::kind::give_up:
      return "give up";
    case dial_action::kind::check_acknowledged:
      return "check " + number;
    case dial_action::kind::dial:
      break;
  }
  switch (action.why) {
    case dial_action::reason::first:
      return "dial " + number;
    case dial_action::reason::failover:
      return "dial " + number + " failover";
    case dial_action::reason::hedge:
      return "dial " + number + " hedge";
    case dial_action::reason::replay:
      return "dial " + number + " replay";
  }
  return "";
}

// A plan with the documented limits, whose time is milliseconds since the client was accepted.
class script {
 public:
  explicit script(std::size_t candidates) : plan(limits, budget, candidates, at(0)) {
    plan.begin(at(0));
  }

  static time_point at(int ms) { return time_point{} + 1h + milliseconds(ms); }

  std::vector<std::string> actions() {
    std::vector<std::string> result;
    for (const auto& each : plan.take_actions()) result.push_back(words(each));
    return result;
  }
  // The time of the plan's next deadline; -1: none.
  int deadline() const {
    const auto next = plan.deadline();
    return next ? static_cast<int>((*next - at(0)) / 1ms) : -1;
  }
  std::vector<std::string> expire(int ms) {
    plan.expired(at(ms), all_slow);
    return actions();
  }
  void connected(std::size_t i, int ms) { plan.connected(i, at(ms)); }
  void hello(int ms) { plan.flight_is(flight::hello, at(ms)); }
  // The whole flight is with the kernel of candidate `i`'s server.
  void delivered(std::size_t i, int ms) {
    plan.sent(i, at(ms));
    plan.acknowledged(i, at(ms));
  }

  config::dial limits;
  hedge_budget budget;
  dial_plan plan;
  bool all_slow = false;
};

TEST(DialPlan, DialsTheFirstCandidateAtOnce) {
  script it(3);
  EXPECT_THAT(it.actions(), ElementsAre("dial 0"));
}

TEST(DialPlan, WithoutCandidatesTheClientIsResetAtOnce) {
  script it(0);
  EXPECT_THAT(it.actions(), ElementsAre("give up"));
  EXPECT_TRUE(it.plan.is_done());
}

TEST(DialPlan, AServerThatSpeaksFirstWins) {
  script it(2);
  it.connected(0, 1);
  it.plan.answered(0);
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "relay 0"));
}

TEST(DialPlan, ARefusalMeansTheNextCandidateAtOnce) {
  script it(3);
  it.plan.failed(0, it.at(1));
  it.plan.failed(1, it.at(2));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "dial 1 failover", "dial 2 failover"));
}

TEST(DialPlan, EveryCandidateOnceThenTheClientIsReset) {
  script it(2);
  it.plan.failed(0, it.at(1));
  it.plan.failed(1, it.at(2));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "dial 1 failover", "give up"));
}

TEST(DialPlan, ASlowConnectIsHedgedAfter250Milliseconds) {
  script it(3);
  EXPECT_EQ(it.deadline(), 250);
  EXPECT_THAT(it.expire(249), ElementsAre("dial 0"));
  EXPECT_THAT(it.expire(250), ElementsAre("dial 1 hedge"));
  EXPECT_EQ(it.deadline(), 500) << "the second has the same time alone";
  EXPECT_THAT(it.expire(500), ElementsAre("dial 2 hedge"));
}

TEST(DialPlan, TheFirstToConnectDropsTheOtherAndIsNotHedgedAgain) {
  script it(3);
  it.expire(250);
  it.connected(1, 260);
  EXPECT_THAT(it.actions(), ElementsAre("drop 0 abandoned"));
  EXPECT_EQ(it.deadline(), 3500) << "only the total is left: the client said nothing yet";
}

TEST(DialPlan, ADroppedHedgeMayBeDialledLater) {
  script it(2);
  it.expire(250);
  it.connected(0, 260);
  it.actions();
  it.plan.ended(0, it.at(300));
  EXPECT_THAT(it.actions(), ElementsAre("dial 1 failover"));
}

TEST(DialPlan, AnAttemptMayTakeASecondWhileThereIsAnother) {
  script it(2);
  while (it.budget.take()) continue;
  it.expire(250);
  EXPECT_THAT(it.expire(999), ElementsAre());
  EXPECT_THAT(it.expire(1000), ElementsAre("drop 0 timed_out", "dial 1 failover"));
}

TEST(DialPlan, TheLastCandidateMayTakeTheTotal) {
  script it(1);
  it.actions();
  EXPECT_EQ(it.deadline(), 3500);
  EXPECT_THAT(it.expire(3499), IsEmpty());
  EXPECT_THAT(it.expire(3500), ElementsAre("drop 0 timed_out", "give up"));
}

TEST(DialPlan, AllSilentEndsAtTheTotal) {
  script it(3);
  it.expire(250);
  it.expire(500);
  EXPECT_EQ(it.deadline(), 3500) << "nobody is left to dial: all of them may take what is left";
  EXPECT_THAT(it.expire(3500),
              ElementsAre("drop 0 timed_out", "drop 1 timed_out", "drop 2 timed_out", "give up"));
}

TEST(DialPlan, AFailedHedgeMeansTheNextCandidateAtOnce) {
  script it(3);
  it.expire(250);
  it.actions();
  it.plan.failed(1, it.at(251));
  EXPECT_THAT(it.actions(), ElementsAre("dial 2 failover"));
}

TEST(DialPlan, AFailedFirstAttemptDoesNotDisturbItsHedge) {
  script it(3);
  it.expire(250);
  it.actions();
  it.plan.failed(0, it.at(300));
  EXPECT_THAT(it.actions(), IsEmpty());
  EXPECT_EQ(it.deadline(), 500);
}

TEST(DialPlan, AHedgeCostsATokenAndWaitsForOne) {
  script it(2);
  while (it.budget.take()) continue;
  it.actions();
  EXPECT_THAT(it.expire(250), IsEmpty());
  EXPECT_EQ(it.deadline(), 350);
  for (int i = 0; i < 10; ++i) it.budget.give_back_a_tenth();
  EXPECT_THAT(it.expire(350), ElementsAre("dial 1 hedge"));
  EXPECT_FALSE(it.budget.take());
}

TEST(DialPlan, NothingIsHedgedWhileAllAreSlow) {
  script it(2);
  it.actions();
  it.all_slow = true;
  EXPECT_THAT(it.expire(250), IsEmpty());
  it.all_slow = false;
  EXPECT_THAT(it.expire(350), ElementsAre("dial 1 hedge"));
}

TEST(DialPlan, AConnectionThatNeededNoTokenGivesATenthBack) {
  hedge_budget budget;
  const config::dial limits;
  while (budget.take()) continue;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(budget.take());
    dial_plan plan(limits, budget, 1, script::at(0));
    plan.begin(script::at(0));
    plan.connected(0, script::at(1));
    plan.answered(0);
  }
  EXPECT_TRUE(budget.take());
}

TEST(DialPlan, TheBudgetHoldsTenTokens) {
  hedge_budget budget;
  for (int i = 0; i < 100; ++i) budget.give_back_a_tenth();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.take());
  EXPECT_FALSE(budget.take());
}

TEST(DialPlan, AConnectionThatWasHedgedGivesNothingBack) {
  script it(2);
  while (it.budget.take()) continue;
  for (int i = 0; i < 19; ++i) it.budget.give_back_a_tenth();
  it.expire(250);
  it.connected(1, 260);
  it.plan.answered(1);
  EXPECT_FALSE(it.budget.take());
}

TEST(DialPlan, AHelloThatIsNotAnsweredGoesToTheNextAfter500Milliseconds) {
  script it(3);
  it.connected(0, 1);
  it.hello(10);
  it.delivered(0, 10);
  it.actions();
  EXPECT_EQ(it.deadline(), 510);
  EXPECT_THAT(it.expire(509), IsEmpty());
  EXPECT_THAT(it.expire(510), ElementsAre("dial 1 replay"));
  it.connected(1, 512);
  EXPECT_TRUE(it.plan.may_send(0));
  EXPECT_TRUE(it.plan.may_send(1));
}

TEST(DialPlan, OneReplayAtATimeThroughAllOfThem) {
  script it(3);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.expire(501);
  it.connected(1, 502);
  it.delivered(1, 502);
  it.actions();
  EXPECT_EQ(it.deadline(), 1002);
  EXPECT_THAT(it.expire(1002), ElementsAre("dial 2 replay"));
}

TEST(DialPlan, TheFirstToAnswerWinsAndTheLosersAreDroppedWithoutAWord) {
  script it(3);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.expire(501);
  it.connected(1, 502);
  it.delivered(1, 502);
  it.expire(1002);
  it.actions();
  it.plan.answered(0);
  EXPECT_THAT(it.actions(), ElementsAre("drop 1", "drop 2 abandoned", "relay 0"));
}

TEST(DialPlan, TheFirstAnswerIsCountedFromTheAcknowledgement) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.plan.sent(0, it.at(1));
  it.actions();
  EXPECT_THAT(it.expire(501), ElementsAre("check 0"));
  it.plan.acknowledged(0, it.at(300));
  EXPECT_THAT(it.expire(799), IsEmpty());
  EXPECT_THAT(it.expire(800), ElementsAre("dial 1 replay"));
}

TEST(DialPlan, AnUnacknowledgedFlightIsAskedAboutAgainAndCountsAsLostAfterTheAttemptTimeout) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.plan.sent(0, it.at(1));
  it.actions();
  EXPECT_THAT(it.expire(501), ElementsAre("check 0"));
  EXPECT_EQ(it.deadline(), 551);
  EXPECT_THAT(it.expire(551), ElementsAre("check 0"));
  EXPECT_THAT(it.expire(1001), ElementsAre("dial 1 replay"));
}

TEST(DialPlan, APartialHelloIsSentAndNeverReplayed) {
  script it(2);
  it.connected(0, 1);
  it.plan.flight_is(flight::partial_hello, it.at(2));
  EXPECT_TRUE(it.plan.may_send(0));
  it.delivered(0, 2);
  EXPECT_EQ(it.deadline(), 3500);
  it.hello(100);
  EXPECT_EQ(it.deadline(), 3500) << "the rest of it is not sent yet";
  it.delivered(0, 101);
  EXPECT_EQ(it.deadline(), 601);
}

TEST(DialPlan, AServerThatEndsOnAHelloMeansTheNextAtOnce) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.plan.ended(0, it.at(2));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "dial 1 failover"));
}

TEST(DialPlan, AServerThatEndsOnASilentClientMeansTheNextAtOnce) {
  script it(2);
  it.connected(0, 1);
  it.plan.ended(0, it.at(2000));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "dial 1 failover"));
}

TEST(DialPlan, AnotherFlightIsRelayedAsSoonAsSomeoneIsConnected) {
  script it(2);
  it.plan.flight_is(flight::other, it.at(0));
  EXPECT_FALSE(it.plan.may_send(0));
  it.connected(0, 1);
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "relay 0"));
}

TEST(DialPlan, AnotherFlightToAConnectedServerIsRelayedAtOnce) {
  script it(2);
  it.connected(0, 1);
  it.plan.flight_is(flight::other, it.at(2));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "relay 0"));
}

TEST(DialPlan, AFlightThatTurnsOutToBeAnotherStaysWithWhoHasItsBeginning) {
  script it(2);
  it.connected(0, 1);
  it.plan.flight_is(flight::partial_hello, it.at(2));
  it.plan.sending(0);
  it.plan.flight_is(flight::other, it.at(3));
  EXPECT_THAT(it.actions(), ElementsAre("dial 0", "relay 0"));
}

TEST(DialPlan, WhatFollowsAReplayedHelloWaitsForTheFirstAnswer) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.expire(501);
  it.connected(1, 502);
  it.delivered(1, 502);
  it.actions();
  it.plan.flight_is(flight::other, it.at(600));
  EXPECT_THAT(it.actions(), IsEmpty());
  EXPECT_FALSE(it.plan.may_send(0));
  EXPECT_FALSE(it.plan.may_send(1));
  it.plan.answered(1);
  EXPECT_THAT(it.actions(), ElementsAre("drop 0", "relay 1"));
}

TEST(DialPlan, WhatFollowsAReplayedHelloGoesToTheOneThatIsLeft) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.expire(501);
  it.connected(1, 502);
  it.delivered(1, 502);
  it.plan.flight_is(flight::other, it.at(600));
  it.actions();
  it.plan.ended(0, it.at(700));
  EXPECT_THAT(it.actions(), ElementsAre("relay 1"));
}

TEST(DialPlan, ASilentClientIsRelayedWhenTheTotalIsOver) {
  script it(2);
  it.connected(0, 1);
  it.actions();
  EXPECT_THAT(it.expire(3500), ElementsAre("relay 0"));
}

TEST(DialPlan, AHelloThatOneServerHasIsRelayedWhenTheTotalIsOver) {
  script it(1);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.actions();
  EXPECT_EQ(it.deadline(), 3500);
  EXPECT_THAT(it.expire(3500), ElementsAre("relay 0"));
}

TEST(DialPlan, AHelloThatTwoServersHaveWaitsOnAfterTheTotal) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.expire(501);
  it.connected(1, 502);
  it.delivered(1, 502);
  it.actions();
  EXPECT_THAT(it.expire(3500), IsEmpty());
  EXPECT_EQ(it.deadline(), -1);
  it.plan.answered(0);
  EXPECT_THAT(it.actions(), ElementsAre("drop 1", "relay 0"));
}

TEST(DialPlan, AHelloThatOneServerHasWaitsOnAfterTheTotalIfThereIsAnother) {
  script it(3);
  while (it.budget.take()) continue;
  it.connected(0, 1);
  it.hello(1);
  it.delivered(0, 1);
  it.actions();
  it.expire(501);
  EXPECT_THAT(it.expire(3500), IsEmpty());
  EXPECT_EQ(it.deadline(), 3600) << "for a token";
  it.plan.ended(0, it.at(3650));
  EXPECT_THAT(it.actions(), ElementsAre("dial 1 failover")) << "it was found hung, and reset";
  EXPECT_EQ(it.deadline(), 4650 - 750) << "a hedge, if there is a token";
  EXPECT_THAT(it.expire(4650), ElementsAre("drop 1 timed_out", "dial 2 failover"));
  EXPECT_THAT(it.expire(5650), ElementsAre("drop 2 timed_out", "give up"));
}

TEST(DialPlan, AReplayThatConnectsWhenTheTotalIsOverGoesOn) {
  script it(2);
  it.connected(0, 1);
  it.hello(1);
  it.plan.sent(0, it.at(3000));
  it.plan.acknowledged(0, it.at(2900));
  it.expire(3400);
  EXPECT_THAT(it.actions(), IsEmpty());
  EXPECT_THAT(it.expire(3500), IsEmpty());
  it.connected(1, 3501);
  it.delivered(1, 3501);
  it.plan.answered(1);
  EXPECT_THAT(it.actions(), ElementsAre("drop 0", "relay 1"));
}

TEST(DialPlan, TheTotalEndsConnectingBesideAConnectedOneThatHasNothing) {
  script it(3);
  it.connected(0, 1);
  it.plan.ended(0, it.at(3300));
  it.connected(1, 3301);
  it.actions();
  EXPECT_THAT(it.expire(3500), ElementsAre("relay 1"));
}

TEST(DialPlan, AfterTheEndNothingMoreIsWanted) {
  script it(2);
  it.connected(0, 1);
  it.plan.answered(0);
  it.actions();
  it.plan.ended(0, it.at(2));
  it.plan.flight_is(flight::other, it.at(3));
  EXPECT_THAT(it.expire(9999), IsEmpty());
  EXPECT_EQ(it.deadline(), -1);
}

}  // namespace
}  // namespace kubelane::proxy
