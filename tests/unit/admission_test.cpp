#include "proxy/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

time_point at(milliseconds time) {
  return time_point{} + 1h + time;
}

TEST(RateLimit, LetsSoManyASecondThrough) {
  rate_limit it(90);
  int let_through = 0;
  for (auto time = 0ms; time < 10s; time += 1ms) let_through += it.take(at(time)) ? 1 : 0;
  EXPECT_GE(let_through, 890);
  EXPECT_LE(let_through, 909);
}

TEST(RateLimit, LetsATenthOfThatThroughAtOnceHoweverLongItWasQuiet) {
  rate_limit it(90);
  int let_through = 0;
  for (int i = 0; i < 100; ++i) let_through += it.take(at(1h)) ? 1 : 0;
  EXPECT_EQ(let_through, 9);
}

TEST(ProblemLog, SaysEachKindOnceInTenSeconds) {
  problem_log it;
  std::vector<std::string> said;
  const auto to = [&](const std::string& words) { said.push_back(words); };
  it.say("a", "a at 0", at(0s), to);
  it.say("a", "a at 9", at(9s), to);
  it.say("b", "b at 9", at(9s), to);
  it.say("a", "a at 10", at(10s), to);
  it.say("a", "a at 19", at(19s), to);
  EXPECT_THAT(said, ElementsAre("a at 0", "b at 9", "a at 10"));
}

TEST(PoolView, IsNotOlderThanATenthOfASecond) {
  const config::config settings;
  upstream_pool pool(settings, [] { return 0.5; });
  pool.reconcile({{.name = "cp1",
                   .address = net::parse_endpoint("10.0.0.1:6443", 0),
                   .zone = "",
                   .member = health::membership::configured}},
                 at(0s));
  pool_view it(pool);
  EXPECT_FALSE(it.all_down(at(0s)));
  EXPECT_FALSE(it.all_slow(at(0s)));
  pool.report_probe(pool.status(at(0s)).upstreams.at(0).id,
                    {.result = health::outcome::refused,
                     .reached = health::phase::connect,
                     .started = at(0s),
                     .finished = at(0s),
                     .detail = ""},
                    at(0s));
  EXPECT_TRUE(it.all_down(at(100ms)));
}

TEST(PoolView, OfNoUpstreamAtAllIsNotSlow) {
  const config::config settings;
  upstream_pool pool(settings, [] { return 0.5; });
  pool_view it(pool);
  EXPECT_FALSE(it.all_slow(at(0s)));
}

}  // namespace
}  // namespace kubelane::proxy
