#include "health/probe_schedule.hpp"

#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using namespace std::chrono_literals;

constexpr time_point t0{1h};

TEST(ProbeSchedule, TheFirstProbeIsDueAtOnce) {
  EXPECT_TRUE(probe_schedule().is_due(t0));
}

TEST(ProbeSchedule, WaitsAsLongAsTheReportWasAnswered) {
  probe_schedule schedule;
  schedule.started();
  schedule.reported(t0, 1s);
  EXPECT_FALSE(schedule.is_due(t0 + 999ms));
  EXPECT_TRUE(schedule.is_due(t0 + 1s));
}

TEST(ProbeSchedule, AWishIsDueAtOnce) {
  probe_schedule schedule;
  schedule.reported(t0, 1s);
  schedule.asked();
  EXPECT_TRUE(schedule.is_due(t0));
}

TEST(ProbeSchedule, AWishDuringAProbeIsFulfilledByIt) {
  probe_schedule schedule;
  schedule.started();
  schedule.asked();
  schedule.ended();
  schedule.reported(t0, 1s);
  EXPECT_FALSE(schedule.is_due(t0));
}

TEST(ProbeSchedule, AWishForANewOneDuringAProbeStartsAnotherAfterIt) {
  probe_schedule schedule;
  schedule.started();
  schedule.asked_anew();
  schedule.ended();
  schedule.reported(t0, 1s);
  EXPECT_TRUE(schedule.is_due(t0));
}

TEST(ProbeSchedule, AWishBetweenAProbesEndAndItsReportIsKept) {
  probe_schedule schedule;
  schedule.started();
  schedule.ended();
  schedule.asked();
  schedule.reported(t0, 1s);
  EXPECT_TRUE(schedule.is_due(t0));
}

TEST(ProbeSchedule, ALossPutsNoPressingProbeOff) {
  probe_schedule schedule;
  schedule.started();
  schedule.ended();
  schedule.pressing();
  schedule.reported(t0, 10ms);
  schedule.reconnected(t0, 10s, 0.5);
  EXPECT_TRUE(schedule.is_due(t0 + 10ms));
  schedule.started();
  schedule.ended();
  schedule.reported(t0, 10ms);
  schedule.reconnected(t0, 10s, 0.5);
  EXPECT_FALSE(schedule.is_due(t0 + 10ms));
}

TEST(ProbeSchedule, KnowsWhetherAProbeWasAskedFor) {
  probe_schedule schedule;
  EXPECT_EQ(schedule.started(), probe_schedule::reason::interval);
  schedule.ended();
  schedule.asked();
  EXPECT_EQ(schedule.started(), probe_schedule::reason::asked);
  schedule.ended();
  EXPECT_EQ(schedule.started(), probe_schedule::reason::interval);
}

TEST(ProbeSchedule, AWishIsFulfilledByTheNextProbe) {
  probe_schedule schedule;
  schedule.asked();
  schedule.started();
  schedule.reported(t0, 1s);
  EXPECT_FALSE(schedule.is_due(t0));
}

TEST(ProbeSchedule, ALossIsDialledAgainOnceBetweenProbes) {
  probe_schedule schedule;
  schedule.started();
  schedule.reported(t0, 1s);
  EXPECT_EQ(schedule.lost(), probe_schedule::after_loss::reconnect);
  schedule.reconnected(t0, 10s, 0.5);
  EXPECT_EQ(schedule.lost(), probe_schedule::after_loss::probe);
  schedule.started();
  EXPECT_EQ(schedule.lost(), probe_schedule::after_loss::reconnect);
}

TEST(ProbeSchedule, AfterALossTheNextProbeIsARandomPartOfTheIntervalAway) {
  probe_schedule schedule;
  schedule.started();
  schedule.reported(t0, 1s);
  schedule.reconnected(t0, 10s, 0.5);
  EXPECT_FALSE(schedule.is_due(t0 + 4999ms));
  EXPECT_TRUE(schedule.is_due(t0 + 5s));
  schedule.reconnected(t0, 10s, 0.0);
  EXPECT_TRUE(schedule.is_due(t0));
}

}  // namespace
}  // namespace kubelane::health
