// What the log says at its default level: a failover is a story of at most five lines, the server's
// return included, and a day on which nothing happens is silent.

#include "line_client.hpp"
#include "serving.hpp"
#include "tests/support/network_namespace.hpp"
#include "tests/support/poll_until.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int longest_story = 5;

/// The lines that a kubelane has written since this was made.
class told {
 public:
  explicit told(binary& run) : run_(run), from_(run.error().size()) {}

  std::vector<std::string> lines() const {
    std::istringstream text(run_.error().substr(from_));
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line);) result.push_back(line);
    return result;
  }

 private:
  binary& run_;
  std::size_t from_;
};

/// Since its three servers are ready. A thread of its own writes the lines, so that they may come
/// after what they tell can be seen.
told told_since_ready(binary& run) {
  for (const char* name : {"cp1", "cp2", "cp3"})
    EXPECT_TRUE(run.says("upstream ready upstream=" + std::string(name))) << run.error();
  return told(run);
}

/// At most five lines, and the first of them names the new state.
void expect_story(const told& log, const std::string& begins) {
  const auto lines = log.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines.front(), HasSubstr(begins));
  EXPECT_LE(lines.size(), static_cast<std::size_t>(longest_story))
      << ::testing::PrintToString(lines);
}

void wait_for_ends(std::vector<std::pair<line_client, std::string>>& held, const std::string& of) {
  for (auto& [client, name] : held)
    EXPECT_TRUE(name != of || client.wait_for_end(15s) != line_client::state::open);
}

TEST(Story, OfAKilledServerIsShort) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(9);
  const told log = told_since_ready(it.run);
  it.servers[0]->kill();
  EXPECT_TRUE(becomes(it.admin, "cp1", "refused"));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(line_client(it.port).ask("name"));
  it.servers[0]->listen();
  EXPECT_TRUE(becomes(it.admin, "cp1", "ready"));
  expect_story(log, "upstream refused upstream=cp1 from=ready");
}

TEST(Story, OfAFrozenServerIsShort) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(9);
  const told log = told_since_ready(it.run);
  it.servers[1]->freeze();
  wait_for_ends(held, "cp2");
  it.servers[1]->thaw();
  EXPECT_TRUE(becomes(it.admin, "cp2", "ready"));
  expect_story(log, "upstream hung upstream=cp2 from=ready");
}

TEST(Story, OfAServerWithoutItsEtcdIsShort) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(9);
  const told log = told_since_ready(it.run);
  it.servers[2]->answer("/readyz", demo::failing_readyz({"etcd"}));
  wait_for_ends(held, "cp3");
  it.servers[2]->answer("/readyz", {});
  EXPECT_TRUE(becomes(it.admin, "cp3", "ready"));
  expect_story(log, "upstream not_ready upstream=cp3 from=ready cause=etcd");
}

TEST(Story, OfAServerThatShutsDownIsShort) {
  serving it("drain: {shutdown: 1s}\n");
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(9);
  const told log = told_since_ready(it.run);
  it.servers[0]->answer("/readyz", demo::failing_readyz({"shutdown"}));
  wait_for_ends(held, "cp1");
  it.servers[0]->kill();
  EXPECT_TRUE(becomes(it.admin, "cp1", "refused"));
  it.servers[0]->answer("/readyz", {});
  it.servers[0]->listen();
  EXPECT_TRUE(becomes(it.admin, "cp1", "ready"));
  expect_story(log, "upstream shutting_down upstream=cp1 from=ready");
}

/// Three servers, the second on another host.
void tell_of_a_vanished_host(const network_pair& hosts) {
  world it;
  auto options = apiserver_options("cp2");
  options.listen = *net::parse_endpoint("10.99.0.2:6443", 0);
  hosts.there([&] { it.servers[1] = std::make_unique<fake_apiserver>(options); });
  binary run({"run", "--config", it.write(it.configuration())});
  for (const char* name : {"cp1", "cp2", "cp3"})
    ASSERT_TRUE(becomes(it.admin, name, "ready")) << run.error();
  std::vector<std::pair<line_client, std::string>> held;
  for (int i = 0; i < 9; ++i) {
    line_client client(it.port);
    auto name = client.ask("name").value_or("nobody");
    held.emplace_back(std::move(client), std::move(name));
  }
  const told log = told_since_ready(run);
  hosts.vanish();
  wait_for_ends(held, "cp2");
  EXPECT_TRUE(becomes(it.admin, "cp2", "dead")) << run.error();
  hosts.come_back();
  EXPECT_TRUE(becomes(it.admin, "cp2", "ready", 40s)) << run.error();
  expect_story(log, "upstream=cp2 from=ready");  // silent first, on a busy machine
}

TEST(Story, OfAVanishedHostIsShort) {
  std::string why;
  const auto hosts = network_pair::create(why);
  if (!hosts) GTEST_SKIP() << why;
  hosts->here([&] { tell_of_a_vanished_host(*hosts); });
}

TEST(Calm, ThousandsOfThingsThatAreAsTheyShouldBeAreSilent) {
  serving it("", "interval: 100ms");
  ASSERT_TRUE(it.ready) << it.run.error();
  const told log = told_since_ready(it.run);
  const auto probes = it.servers[0]->counters().probes;
  for (int round = 0; round < 30; ++round) {
    { const auto clients = it.hold(3); }
    for (const char* path : {"/metrics", "/status", "/readyz", "/livez", "/"})
      EXPECT_EQ(get(it.admin, path).status, 200);
    std::this_thread::sleep_for(100ms);
    if (round == 10) it.write(it.configuration("", "interval: 100ms"));
  }
  EXPECT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; }, 20s)) << "written as it was";
  EXPECT_GT(it.servers[0]->counters().probes, probes + 10);
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(Log, TellsWhoAsksForAReloadThatNothingHasChanged) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.run.signal(SIGHUP);
  EXPECT_TRUE(it.run.says("configuration taken on added=0 removed=0 kept=3")) << it.run.error();
}

TEST(Log, LevelOfTheCommandLineIsStrongerThanTheConfigurations) {
  world it;
  const auto path = it.write(it.configuration("log: {level: error}\n"));
  binary run({"run", "--config", path, "--log-level", "debug"});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready")) << run.error();
  EXPECT_TRUE(line_client(it.port).ask("name"));
  EXPECT_TRUE(run.says("connection ended upstream=")) << run.error();
}

TEST(Log, LevelErrorLeavesTheStoryOut) {
  world it;
  binary run({"run", "--config", it.write(it.configuration("log: {level: error}\n"))});
  ASSERT_TRUE(becomes(it.admin, "cp1", "ready"));
  const told log(run);
  it.servers[0]->kill();
  EXPECT_TRUE(becomes(it.admin, "cp1", "refused"));
  EXPECT_THAT(log.lines(), IsEmpty());
}

TEST(Log, AsJsonIsOneObjectALineWithTimeLevelAndEvent) {
  serving it("log: {format: json}\n");
  ASSERT_TRUE(it.ready) << it.run.error();
  const told log(it.run);
  it.servers[0]->kill();
  EXPECT_TRUE(becomes(it.admin, "cp1", "refused"));
  it.servers[0]->listen();
  EXPECT_TRUE(becomes(it.admin, "cp1", "ready"));
  const auto lines = log.lines();
  EXPECT_FALSE(lines.empty());
  for (const auto& line : lines) {
    boost::system::error_code error;
    const auto value = boost::json::parse(line, error);
    ASSERT_FALSE(error) << line;
    for (const char* member : {"time", "level", "event", "upstream"})
      EXPECT_TRUE(value.as_object().contains(member)) << line;
  }
}

}  // namespace
}  // namespace kubelane::test
