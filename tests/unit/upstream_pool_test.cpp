// The set of upstreams and the order to try them.

#include "proxy/upstream_pool.hpp"

#include "pool_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using health::dial_result;
using test::outcome;
using test::pool_driver;
using test::state;

wanted_upstream wanted(const std::string& name, const std::string& address,
                       const std::string& zone = "") {
  return {.name = name,
          .address = net::parse_endpoint(address, 6443),
          .zone = zone,
          .member = health::membership::configured};
}

std::string sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// --- candidates ---

TEST(Candidates, AreAllUpstreamsBeforeAnythingIsKnown) {
  pool_driver it(pool_driver::start::unprobed);
  EXPECT_EQ(sorted(it.order()), "cp1, cp2, cp3");
  EXPECT_FALSE(it.status().panic);
}

TEST(Candidates, ComeByTierAndEachOnce) {
  pool_driver it(pool_driver::start::ready, {}, {"cp1", "cp2", "cp3", "cp4", "cp5", "cp6"});
  it.answers("cp1", outcome::wrong_certificate);
  it.answers("cp2", outcome::refused);
  it.answers("cp3", outcome::not_ready);
  it.answers("cp4", outcome::shutting_down);
  it.answers("cp5", outcome::host_silent);
  it.run(4s);
  auto order = it.order();
  std::sort(order.begin() + 3, order.begin() + 5);  // refused and dead are equals
  EXPECT_EQ(order, (std::vector<std::string>{"cp6", "cp4", "cp3", "cp2", "cp5", "cp1"}));
}

TEST(Candidates, AvoidAnUpstreamFromItsFirstFailureOn) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  while (!it.look("cp1").doubtful) it.run(1ms);
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_EQ(it.order().back(), "cp1");
  EXPECT_EQ(it.seen<upstream_changed>().size(), 0u) << "nothing flaps";
}

TEST(Candidates, AvoidAnUpstreamFromAnUnansweredSuspicionOn) {
  pool_driver it(pool_driver::start::ready);
  it.answers("cp1", outcome::timed_out);
  it.send("cp1");
  it.run(450ms);
  EXPECT_EQ(it.order().back(), "cp1");
}

TEST(Candidates, InTierFourRecoveringOnesComeBeforeSilentOnes) {
  pool_driver it(pool_driver::start::ready);
  it.all_answer(outcome::refused);
  it.run(3s);
  it.answers("cp2", outcome::passed);
  it.run(1500ms);
  ASSERT_EQ(it.look("cp2").tier, 4);
  EXPECT_EQ(it.order().front(), "cp2");
}

TEST(Candidates, PreferThisNodesZone) {
  config::config settings;
  settings.zone = "b";
  pool_driver it(pool_driver::start::unprobed, settings, {});
  it.pool.reconcile({wanted("cp1", "10.0.0.1", "a"), wanted("cp2", "10.0.0.2", "b")}, it.now);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(it.pool.candidates(it.now).front().address, *net::parse_endpoint("10.0.0.2", 6443));
}

TEST(Candidates, OfABurstAreSpreadEvenly) {
  pool_driver it(pool_driver::start::unprobed);
  std::map<std::string, int> first;
  for (int i = 0; i < 300; ++i) {
    const auto name = it.order().front();
    it.open(name, 1);
    ++first[name];
  }
  EXPECT_EQ(first, (std::map<std::string, int>{{"cp1", 100}, {"cp2", 100}, {"cp3", 100}}));
}

TEST(Candidates, DoNotIncludeUnresolvedNames) {
  pool_driver it(pool_driver::start::unprobed, {}, {});
  it.pool.reconcile({{.name = "api", .address = std::nullopt, .zone = "", .member = {}},
                     wanted("cp2", "10.0.0.2")},
                    it.now);
  EXPECT_EQ(it.pool.candidates(it.now).size(), 1u);
  EXPECT_EQ(it.status().upstreams.front().state, state::unresolved);
}

TEST(Candidates, OfDiscoveredOnesThatWereNeverProbedAreTheLastResort) {
  pool_driver it(pool_driver::start::unprobed, {}, {});
  auto discovered = wanted("cp1", "10.0.0.1");
  discovered.member = health::membership::discovered;
  auto leaving = wanted("cp2", "10.0.0.2");
  leaving.member = health::membership::leaving;
  it.pool.reconcile({discovered, leaving, wanted("cp3", "10.0.0.3")}, it.now);
  const auto all = it.status().upstreams;
  EXPECT_EQ(all[0].tier, 4);
  EXPECT_EQ(all[1].tier, 4);
  EXPECT_EQ(all[2].tier, 1);
}

// --- the set ---

TEST(Reconcile, KeepsHealthAndConnectionsOfWhatStays) {
  pool_driver it(pool_driver::start::ready);
  const auto id = it.id("cp1");
  it.reconcile({"cp4", "cp1"});
  EXPECT_EQ(it.id("cp1"), id);
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_EQ(it.look("cp1").connections, 5u);
  EXPECT_EQ(it.state_of("cp4"), state::unknown);
}

TEST(Reconcile, WithTheSameSetInAnotherOrderChangesNothing) {
  pool_driver it(pool_driver::start::ready);
  it.reconcile({"cp3", "cp2", "cp1"});
  it.run(60s);
  EXPECT_EQ(it.seen<upstream_changed>().size(), 0u);
  EXPECT_EQ(it.closings(), "");
  EXPECT_EQ(it.status().upstreams.front().name, "cp3") << "shown in the wanted order";
}

TEST(Reconcile, GivesARemovedUpstreamNoNewConnection) {
  pool_driver it(pool_driver::start::ready);
  it.reconcile({"cp2", "cp3"});
  EXPECT_EQ(sorted(it.order()), "cp2, cp3");
  EXPECT_TRUE(it.look("cp1").removed);
  EXPECT_EQ(it.status().upstreams.back().name, "cp1");
}

TEST(Reconcile, ARenamedUpstreamIsTheSame) {
  pool_driver it(pool_driver::start::ready);
  const auto id = it.id("cp1");
  it.pool.reconcile({wanted("new", "10.0.0.1")}, it.now);
  EXPECT_EQ(it.status().upstreams.front().id, id);
  EXPECT_EQ(it.status().upstreams.front().name, "new");
}

TEST(Reconcile, TheSameEndpointTwiceIsOneUpstream) {
  pool_driver it(pool_driver::start::unprobed, {}, {});
  it.pool.reconcile({wanted("a", "10.0.0.1"), wanted("b", "10.0.0.1")}, it.now);
  EXPECT_EQ(it.status().upstreams.size(), 1u);
}

TEST(Reconcile, ARemovedUpstreamIsGoneWithItsLastConnection) {
  pool_driver it(pool_driver::start::ready);
  it.reconcile({"cp2", "cp3"});
  it.run(5s);
  EXPECT_EQ(it.seen<upstream_gone>().size(), 0u);
  it.close("cp1", 5);
  ASSERT_EQ(it.seen<upstream_gone>().size(), 1u);
  EXPECT_EQ(it.seen<upstream_gone>().front().name, "cp1");
  EXPECT_EQ(it.status().upstreams.size(), 2u);
}

TEST(Reconcile, ADialThatBeganBeforeTheRemovalMayStillConnect) {
  pool_driver it(pool_driver::start::ready);
  it.close("cp1", 5);
  it.reconcile({"cp2", "cp3"});
  it.run(2s);
  it.open("cp1", 1);
  it.run(5s);
  EXPECT_EQ(it.seen<upstream_gone>().size(), 0u);
  it.close("cp1", 1);
  EXPECT_EQ(it.seen<upstream_gone>().size(), 1u);
}

TEST(Reconcile, APlaceholderIsGoneAsSoonAsItsNameHasAnAddress) {
  pool_driver it(pool_driver::start::unprobed, {}, {});
  it.pool.reconcile({{.name = "api", .address = std::nullopt, .zone = "", .member = {}}}, it.now);
  it.pool.reconcile({wanted("api/10.0.0.1", "10.0.0.1")}, it.now);
  it.take();
  EXPECT_EQ(it.seen<upstream_gone>().size(), 1u);
  EXPECT_EQ(it.status().upstreams.size(), 1u);
}

TEST(Reconcile, WhatComesBackWhileItLeavesKeepsItsConnections) {
  pool_driver it(pool_driver::start::ready);
  it.reconcile({"cp2", "cp3"});
  it.run(11s);
  ASSERT_EQ(it.closings(), "removed cp1");
  it.reconcile({"cp1", "cp2", "cp3"});
  EXPECT_EQ(it.seen<call_off>().size(), 1u);
  EXPECT_EQ(it.look("cp1").connections, 5u);
  it.run(60s);
  EXPECT_EQ(it.state_of("cp1"), state::ready);
  EXPECT_EQ(it.closings(), "removed cp1");
}

TEST(Reconcile, EvidenceForAnUpstreamThatIsGoneIsPassedOver) {
  pool_driver it(pool_driver::start::unprobed);
  const auto id = it.id("cp1");
  it.reconcile({"cp2"});
  it.run(10s);
  EXPECT_GT(it.pool.report_probe(id, {}, it.now), 0ms);
  it.pool.report_dial(id, dial_result::refused, it.now);
  it.pool.report_host_silent(id, "", it.now);
  it.pool.forget_unanswered(id);
  EXPECT_EQ(it.status().upstreams.size(), 1u);
}

}  // namespace
}  // namespace kubelane::proxy
