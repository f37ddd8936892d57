#include "health/tracker.hpp"

#include "tracked.hpp"

#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;
using test::tracked;

constexpr auto worse_states = {outcome::refused, outcome::host_silent, outcome::wrong_certificate};

// --- at once ---

TEST(Tracker, StartsUnknown) {
  tracked upstream;
  EXPECT_EQ(upstream.current(), state::unknown);
  EXPECT_EQ(upstream.it.cause(upstream.now), "");
  EXPECT_FALSE(upstream.it.doubtful());
}

TEST(Tracker, TheVeryFirstPassCountsAtOnce) {
  tracked upstream;
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.current(), state::ready);
  EXPECT_FALSE(upstream.it.risen()) << "no slow start for the first start";
}

TEST(Tracker, TheVeryFirstPassCountsAtOnceAfterARefusalToo) {
  tracked upstream;
  upstream.probe(outcome::refused);
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.current(), state::ready);
}

TEST(Tracker, UnauthorizedIsReadyWithTheCauseShown) {
  tracked upstream;
  upstream.probe(outcome::unauthorized, "401 Unauthorized");
  EXPECT_EQ(upstream.current(), state::ready);
  EXPECT_EQ(upstream.it.about(), matter::unauthorized);
  EXPECT_EQ(upstream.it.cause(upstream.now), "401 Unauthorized");
}

TEST(Tracker, APassWithoutIdentityIsReadyWithTheCauseShown) {
  tracked upstream;
  upstream.report({.result = outcome::passed, .verified = false, .detail = "no CA file yet"});
  EXPECT_EQ(upstream.current(), state::ready);
  EXPECT_EQ(upstream.it.about(), matter::unverified);
  EXPECT_EQ(upstream.it.cause(upstream.now), "no CA file yet");
  upstream.probe(outcome::passed);
  EXPECT_EQ(upstream.it.about(), matter::plain);
}

TEST(Tracker, HardEvidenceActsAtOnce) {
  const std::pair<outcome, state> rows[] = {
      {outcome::refused, state::refused},
      {outcome::host_silent, state::dead},
      {outcome::shutting_down, state::shutting_down},
      {outcome::wrong_certificate, state::impostor},
      {outcome::not_tls, state::impostor},
      {outcome::bad_validity, state::not_ready},
  };
  for (const auto& [result, expected] : rows) {
    tracked upstream;
    upstream.make_ready();
    upstream.probe(result);
    EXPECT_EQ(upstream.current(), expected) << to_string(result);
  }
}

TEST(Tracker, ADialThatIsRefusedActsAtOnce) {
  tracked upstream;
  upstream.make_ready();
  EXPECT_TRUE(upstream.it.dial_refused(upstream.now));
  EXPECT_EQ(upstream.current(), state::refused);
  EXPECT_FALSE(upstream.it.dial_refused(upstream.now)) << "only the first is news";
}

TEST(Tracker, TheKernelsWordActsAtOnce) {
  tracked upstream;
  upstream.make_ready();
  EXPECT_TRUE(upstream.it.host_silent("keep-alive lost", upstream.now));
  EXPECT_EQ(upstream.current(), state::dead);
  EXPECT_EQ(upstream.it.cause(upstream.now), "keep-alive lost");
}

TEST(Tracker, ACertificateOutsideItsValidityIsNoReasonToLeave) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::bad_validity, "certificate expired");
  EXPECT_EQ(upstream.it.about(), matter::certificate);
  EXPECT_EQ(upstream.it.cause(upstream.now), "certificate expired");
}

// --- soft ---

TEST(Tracker, SoftFailuresNeedAsManyInARowAsFallSays) {
  for (const auto soft : {outcome::timed_out, outcome::lost, outcome::not_ready}) {
    for (const int fall : {1, 3, 5}) {
      tracked upstream({.fall = fall});
      upstream.make_ready();
      upstream.times(fall - 1, soft);
      EXPECT_EQ(upstream.current(), state::ready) << to_string(soft) << fall;
      upstream.probe(soft);
      EXPECT_NE(upstream.current(), state::ready) << to_string(soft) << fall;
    }
  }
}

TEST(Tracker, OneCheckInTenFailingChangesNothing) {
  for (const auto soft : {outcome::timed_out, outcome::lost, outcome::not_ready}) {
    tracked upstream;
    upstream.make_ready();
    const auto since = upstream.it.since();
    for (int i = 0; i < 1000; ++i) upstream.probe(i % 10 == 9 ? soft : outcome::passed);
    EXPECT_EQ(upstream.it.since(), since);
  }
}

TEST(Tracker, AnUnknownUpstreamAlsoNeedsFallSoftFailures) {
  tracked upstream;
  upstream.times(2, outcome::not_ready);
  EXPECT_EQ(upstream.current(), state::unknown);
  upstream.probe(outcome::not_ready);
  EXPECT_EQ(upstream.current(), state::not_ready);
}

TEST(Tracker, FailedChecksAreTheCause) {
  tracked upstream;
  upstream.make_ready();
  for (int i = 0; i < 3; ++i)
    upstream.report({.result = outcome::not_ready, .etcd_failed = true, .detail = "etcd"});
  EXPECT_EQ(upstream.it.about(), matter::etcd);
  EXPECT_EQ(upstream.it.cause(upstream.now), "etcd");
  upstream.probe(outcome::not_ready, "poststarthook/x");
  EXPECT_EQ(upstream.it.about(), matter::other);
  EXPECT_EQ(upstream.it.cause(upstream.now), "poststarthook/x");
}

TEST(Tracker, ThreeAnswersOfOneMomentCountOnce) {
  tracked upstream;
  upstream.make_ready();
  for (int i = 0; i < 4; ++i) {
    const probe_report red{
        .result = outcome::not_ready, .started = upstream.now, .finished = upstream.now + 1ms};
    upstream.it.record(red, upstream.now + 1ms);
    upstream.now += 100ms;
  }
  EXPECT_EQ(upstream.current(), state::ready) << "one cached result of etcd";
}

TEST(Tracker, AnyAnswerIsProofOfLifeFromAWorseState) {
  for (const auto worse : worse_states) {
    tracked upstream;
    upstream.make_ready();
    upstream.probe(worse);
    upstream.probe(outcome::not_ready);
    EXPECT_EQ(upstream.current(), state::not_ready) << to_string(worse);
  }
}

TEST(Tracker, ProbesCutOffAreNotReadyButNoReasonToLeave) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(3, outcome::lost);
  EXPECT_EQ(upstream.current(), state::not_ready);
  EXPECT_EQ(upstream.it.about(), matter::connection);
}

TEST(Tracker, FailuresOfSeveralKindsInARowCountTogether) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::lost);
  upstream.probe(outcome::timed_out);
  upstream.probe(outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::not_ready);
  EXPECT_EQ(upstream.it.about(), matter::connection);
}

// --- silence ---

TEST(Tracker, TimeOutsWithoutAByteAreHung) {
  tracked upstream;
  upstream.make_ready();
  const auto first = upstream.now;
  upstream.times(3, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::hung);
  EXPECT_EQ(upstream.it.silence(), first);
}

TEST(Tracker, TimeOutsWhileBytesComeAreSlow) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(2, outcome::timed_out);
  upstream.it.heard(upstream.now);
  upstream.probe(outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::slow);
}

TEST(Tracker, AByteAtTheStartOfTheEarliestProbeIsEnoughToBeSlow) {
  tracked upstream;
  upstream.make_ready();
  upstream.it.heard(upstream.now);
  upstream.times(3, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::slow);
}

TEST(Tracker, AHandshakeThatWasAnsweredIsAByteToo) {
  tracked upstream;
  upstream.make_ready();
  for (int i = 0; i < 3; ++i) upstream.report({.result = outcome::timed_out, .heard = true});
  EXPECT_EQ(upstream.current(), state::slow);
}

TEST(Tracker, AHandshakeThatWasAnsweredEndsTheSilenceBeforeIt) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::timed_out);
  upstream.report({.result = outcome::timed_out, .heard = true});
  upstream.times(2, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::slow);
  upstream.probe(outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::hung);
}

TEST(Tracker, AByteMakesAHungOneSlowAtOnce) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(3, outcome::timed_out);
  upstream.it.heard(upstream.now);
  EXPECT_EQ(upstream.current(), state::slow);
  EXPECT_FALSE(upstream.it.silence());
}

TEST(Tracker, SilenceMakesASlowOneHungWithEvidenceAfterTheLastByte) {
  tracked upstream;
  upstream.make_ready();
  upstream.times(3, outcome::timed_out);
  upstream.it.heard(upstream.now);
  upstream.now += 1ms;
  const auto silent_since = upstream.now;
  upstream.times(2, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::slow);
  upstream.probe(outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::hung);
  EXPECT_EQ(upstream.it.silence(), silent_since);
}

TEST(Tracker, TheSuspicionIsTheFirstEvidenceIfItIsEarlier) {
  tracked upstream;
  upstream.make_ready();
  const auto suspected = upstream.now;
  upstream.it.suspect(suspected);
  upstream.now += 50ms;
  upstream.times(3, outcome::timed_out);
  EXPECT_EQ(upstream.it.silence(), suspected);
}

TEST(Tracker, APauseOfTwoSecondsConvictsNobody) {
  tracked upstream;
  upstream.make_ready();
  const auto resumes = upstream.now + 2s;
  while (upstream.now + 500ms < resumes) {  // in a hurry: one probe after the other
    const probe_report report{
        .result = outcome::timed_out, .started = upstream.now, .finished = upstream.now + 500ms};
    upstream.now += 501ms;
    upstream.it.record(report, upstream.now);
  }
  EXPECT_EQ(upstream.current(), state::ready);
}

TEST(Tracker, ADeadOneStaysDeadWhileProbesTimeOut) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::host_silent);
  upstream.times(20, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::dead);
}

TEST(Tracker, AByteShowsThatADeadOneIsNot) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::host_silent);
  upstream.it.heard(upstream.now);
  EXPECT_EQ(upstream.current(), state::slow);
}

TEST(Tracker, ARefusingOneThatFallsSilentIsHung) {
  tracked upstream;
  upstream.make_ready();
  upstream.probe(outcome::refused);
  upstream.times(3, outcome::timed_out);
  EXPECT_EQ(upstream.current(), state::hung);
}

// --- late answers ---

/// kube-apiserver says that its etcd is lost after two seconds, so every probe times out first.
probe_report late_etcd(time_point started) {
  probe_report report;
  report.result = outcome::not_ready;
  report.started = started;
  report.finished = started + 500ms;
  report.etcd_failed = true;
  report.detail = "etcd";
  return report;
}

TEST(Tracker, AnAnswerThatComesLateDecidesOnceProbesHaveFailedInARow) {
  tracked upstream;
  upstream.make_ready();
  const auto first = upstream.now;
  for (int i = 0; i < 3; ++i) upstream.report({.result = outcome::timed_out, .heard = true});
  EXPECT_EQ(upstream.current(), state::slow);
  upstream.it.answered_late(late_etcd(first), upstream.now);
  EXPECT_EQ(upstream.current(), state::not_ready);
  EXPECT_EQ(upstream.it.about(), matter::etcd);
  ASSERT_TRUE(upstream.it.first_etcd());
  EXPECT_EQ(upstream.it.first_etcd()->started, first) << "drains are timed from the first failure";
}

TEST(Tracker, OneLateAnswerAloneChangesNothing) {
  tracked upstream;
  upstream.make_ready();
  const auto first = upstream.now;
  upstream.report({.result = outcome::timed_out, .heard = true});
  upstream.it.answered_late(late_etcd(first), upstream.now);
  EXPECT_EQ(upstream.current(), state::ready);
}

TEST(Tracker, AServerWhoseAnswersStayLateStaysNotReady) {
  tracked upstream;
  upstream.make_ready();
  for (int i = 0; i < 12; ++i) {
    const auto started = upstream.now;
    upstream.report({.result = outcome::timed_out, .heard = true});
    if (i >= 2) upstream.it.answered_late(late_etcd(started), upstream.now);
    if (i >= 3) {
      EXPECT_EQ(upstream.current(), state::not_ready) << i;
    }
  }
}

TEST(Tracker, ALateAnswerFromBeforeTheLastPassSaysNothing) {
  tracked upstream;
  upstream.make_ready();
  const auto first = upstream.now;
  for (int i = 0; i < 3; ++i) upstream.report({.result = outcome::timed_out, .heard = true});
  upstream.times(3, outcome::passed);
  EXPECT_EQ(upstream.current(), state::ready);
  upstream.it.answered_late(late_etcd(first), upstream.now);
  EXPECT_EQ(upstream.current(), state::ready);
}

}  // namespace
}  // namespace kubelane::health
