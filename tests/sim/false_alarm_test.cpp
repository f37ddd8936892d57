// Nothing is wrong with the data path: then no connection is closed, whatever probes see.

#include "scenario.hpp"

#include <gtest/gtest.h>

#include <iostream>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;

happening at(milliseconds after, std::function<void(world&)> what) {
  return {after, [what](world& in, node&) { what(in); }};
}

std::vector<happening> all(milliseconds lasts, std::function<void(api_server&)> on) {
  return {at(0ms,
             [=](world& in) {
               for (auto& each : in.servers) on(each);
             }),
          at(lasts, [](world& in) {
            for (auto& each : in.servers) each = {};
          })};
}

std::vector<happening> one(milliseconds lasts, std::function<void(api_server&)> on) {
  return {at(0ms, [=](world& in) { on(in.servers[0]); }),
          at(lasts, [](world& in) { in.servers[0] = {}; })};
}

std::vector<happening> staggered(milliseconds apart, milliseconds lasts, readyz answer) {
  std::vector<happening> script;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto begins = static_cast<int>(i) * apart;
    script.push_back(at(begins, [=](world& in) { in.servers[i].answer = answer; }));
    script.push_back(at(begins + lasts, [=](world& in) { in.servers[i].answer = readyz::ok; }));
  }
  return script;
}

std::vector<happening> dark(milliseconds lasts) {
  return {at(0ms, [](world& in) { in.node_link = false; }),
          at(lasts, [](world& in) { in.node_link = true; })};
}

std::vector<happening> starved(milliseconds stall, milliseconds runs, milliseconds lasts) {
  std::vector<happening> script;
  for (auto begins = 0ms; begins < lasts; begins += stall + runs) {
    script.push_back({begins, [](world&, node& it) { it.stalled = true; }});
    script.push_back({begins + stall, [](world&, node& it) { it.stalled = false; }});
  }
  return script;
}

enum class states { may_change, stay };
enum class dials { all_served, some_while_dark };

struct row {
  const char* name;
  std::vector<happening> script;
  states health = states::may_change;
  dials fresh = dials::all_served;
};

const auto& rows() {
  static const std::vector<row> list = {
      {"EveryCheckAnswersAfterThreeSeconds",
       all(30s, [](api_server& at) { at.answer_delay = 3s; })},
      {"EveryReadyzRedForEightSeconds",
       all(8s, [](api_server& at) { at.answer = readyz::etcd_failed; })},
      {"EveryReadyzRedAndLateForEightSeconds", all(8s,
                                                   [](api_server& at) {
                                                     at.answer = readyz::etcd_failed;
                                                     at.answer_delay = 2s;
                                                   })},
      {"EveryReadyzRedForAMinute",
       all(60s, [](api_server& at) { at.answer = readyz::etcd_failed; })},
      {"EveryReadyzRedForAnotherReason",
       all(15s, [](api_server& at) { at.answer = readyz::other_failed; })},
      {"RedOneAfterTheOther", staggered(700ms, 5s, readyz::etcd_failed)},
      {"RedOneAfterTheOtherBriefly", staggered(700ms, 3200ms, readyz::etcd_failed)},
      {"RedOneAfterTheOtherBySeconds", staggered(1s, 8s, readyz::etcd_failed)},
      {"RedOneAfterTheOtherForAnotherReason", staggered(1s, 8s, readyz::other_failed)},
      {"ChecksAnswer401", all(60s, [](api_server& at) { at.answer = readyz::unauthorized; }),
       states::stay},
      {"OwnLinkDown300Milliseconds", dark(300ms), states::stay, dials::some_while_dark},
      {"OwnLinkDownOneSecond", dark(1s), states::may_change, dials::some_while_dark},
      {"OwnLinkDownTwoSeconds", dark(2s), states::may_change, dials::some_while_dark},
      {"OwnLinkDownFourSeconds", dark(4s), states::may_change, dials::some_while_dark},
      {"OwnLinkDownTwentySeconds", dark(20s), states::may_change, dials::some_while_dark},
      {"OneLinkDownHalfASecond", one(500ms, [](api_server& at) { at.link = false; }), states::stay},
      {"OneStopsAcceptingAndServesOn", one(20s, [](api_server& at) { at.accepts = false; })},
      {"OneSaysShutdownAndServesOn",
       one(20s, [](api_server& at) { at.answer = readyz::shutdown_failed; })},
      {"OneIsPausedForTwoSeconds",
       one(1990ms, [](api_server& at) { at.program = process::frozen; })},
      {"OneCheckInTenFails", all(60s, [](api_server& at) { at.fails_each = 10; }), states::stay},
      {"OnePercentOfPacketsLost",
       {at(0ms, [](world& in) { in.packet_loss = 0.01; }),
        at(60s, [](world& in) { in.packet_loss = 0; })},
       states::stay,
       dials::some_while_dark},
      {"StarvedForFiveSecondsAtOnce", starved(5s, 5ms, 5s), states::stay},
      {"StarvedForFiveSeconds", starved(600ms, 20ms, 5s), states::stay},
      {"StarvedALittleForHalfAMinute", starved(300ms, 50ms, 30s)},
      {"StarvedForHalfAMinute", starved(600ms, 20ms, 30s)},
  };
  return list;
}

struct seen {
  int closings = 0;
  int orders = 0;
  int changes = 0;
  int fresh_failed = 0;
};

seen run_all(const scenario& plan, int runs) {
  seen all;
  for (int seed = 1; seed <= runs; ++seed) {
    run(plan, static_cast<std::uint64_t>(seed), [&](world&, node& it, time_point) {
      all.closings += static_cast<int>(it.closings.size());
      all.orders += it.reset_orders + it.drain_orders;
      for (const auto& each : it.changes) all.changes += each.from != each.to;
      all.fresh_failed += it.fresh_failed;
    });
  }
  std::cout << plan.name << ": " << all.closings << " closed, " << all.orders << " ordered, "
            << all.changes << " changes of state, " << all.fresh_failed << " fresh failed in "
            << runs << " runs\n";
  return all;
}

class FalseAlarm : public testing::TestWithParam<std::tuple<std::size_t, int, bool>> {};

TEST_P(FalseAlarm, ClosesNothing) {
  const auto [index, nodes, busy] = GetParam();
  const auto& of = rows()[index];
  scenario plan{.name = of.name};
  plan.settings.cluster.nodes = nodes;
  plan.every = busy ? 20ms : 0ms;
  plan.fresh_every = busy ? 100ms : 0ms;
  plan.script = of.script;
  plan.lasts = of.script.back().after + 15s;
  const auto all = run_all(plan, seeds());
  EXPECT_EQ(all.closings, 0);
  EXPECT_EQ(all.orders, 0);
  if (of.health == states::stay) {
    EXPECT_EQ(all.changes, 0);
  }
  if (of.fresh == dials::all_served) {
    EXPECT_EQ(all.fresh_failed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, FalseAlarm,
                         testing::Combine(testing::Range<std::size_t>(0, rows().size()),
                                          testing::Values(100, 5000), testing::Bool()),
                         [](const auto& each) {
                           return std::string(rows()[std::get<0>(each.param)].name) + "_" +
                                  std::to_string(std::get<1>(each.param)) +
                                  (std::get<2>(each.param) ? "_busy" : "_idle");
                         });

TEST(FalseAlarms, OfTheOnlyServerServeEveryClient) {
  scenario plan{.name = "one server, every check answers after three seconds", .servers = 1};
  plan.every = 20ms;
  plan.fresh_every = 100ms;
  plan.script = all(60s, [](api_server& at) { at.answer_delay = 3s; });
  plan.lasts = 75s;
  const auto seen = run_all(plan, seeds() / 10);
  EXPECT_EQ(seen.closings, 0);
  EXPECT_EQ(seen.fresh_failed, 0);
}

TEST(FalseAlarms, ByRequestsThatTakeAMinuteChangeNoState) {
  scenario plan{.name = "requests that take a minute", .clients = 3};
  plan.script = {{0ms, [](world&, node& it) { it.connect_clients(9, 1s, 60s); }}};
  plan.lasts = 180s;
  const auto seen = run_all(plan, seeds() / 10);
  EXPECT_EQ(seen.closings, 0);
  EXPECT_EQ(seen.changes, 0);
}

}  // namespace
}  // namespace kubelane::sim
