#include "net/lag_meter.hpp"

#include <gtest/gtest.h>

namespace kubelane::net {
namespace {

using namespace std::chrono_literals;

lag_meter::time_point at(std::chrono::milliseconds time) {
  return lag_meter::time_point{} + 1h + time;
}

TEST(LagMeter, TheWorstTickSinceThenCounts) {
  lag_meter it;
  it.note(at(50ms), at(53ms));
  it.note(at(103ms), at(400ms));
  it.note(at(450ms), at(451ms));
  EXPECT_EQ(it.worst_since(at(0ms), at(500ms), at(460ms)), 297ms);
  EXPECT_EQ(it.worst_since(at(400ms), at(500ms), at(460ms)), 297ms);
  EXPECT_EQ(it.worst_since(at(401ms), at(500ms), at(460ms)), 1ms);
  EXPECT_EQ(it.worst_since(at(452ms), at(500ms), at(460ms)), 0ms);
}

TEST(LagMeter, ATickThatHasNotComeYetCounts) {
  lag_meter it;
  it.note(at(50ms), at(50ms));
  EXPECT_EQ(it.worst_since(at(60ms), at(100ms), at(900ms)), 800ms);
}

TEST(LagMeter, AMinuteIsRemembered) {
  lag_meter it;
  it.note(at(0s), at(1s));
  it.note(at(60s), at(60s));
  EXPECT_EQ(it.worst_since(at(0s), at(61s), at(60s)), 1s);
  it.note(at(62s), at(62s));
  EXPECT_EQ(it.worst_since(at(0s), at(63s), at(62s)), 0s);
}

}  // namespace
}  // namespace kubelane::net
