// The binary's contract: exit statuses and messages.

#include "line_client.hpp"
#include "tests/support/poll_until.hpp"
#include "tests/support/silent_listener.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::test {
namespace {

TEST(Command, WithoutArgumentsSaysWhatItTakesAndExits64) {
  binary run({});
  EXPECT_EQ(run.wait(), 64);
  EXPECT_NE(run.error().find("subcommand is required"), std::string::npos) << run.error();
}

TEST(Command, AWordThatIsNoCommandIsNamed) {
  for (const auto& words : {std::vector<std::string>{"frob"}, {"inventory", "frob"}}) {
    binary run(words);
    EXPECT_EQ(run.wait(), 64);
    EXPECT_NE(run.error().find("`frob` is not known here"), std::string::npos) << run.error();
  }
}

TEST(Command, HelpAndVersionExitZero) {
  binary version({"--version"});
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.out().rfind("kubelane ", 0), 0U) << version.out();
  binary help({"--help"});
  EXPECT_EQ(help.wait(), 0);
  for (const char* command : {"run", "check", "status", "demo", "quorum", "etcd"}) {
    EXPECT_NE(help.out().find(command), std::string::npos) << command;
    binary one({command, "--help"});
    EXPECT_EQ(one.wait(), 0) << command;
    EXPECT_FALSE(one.out().empty()) << command;
  }
}

TEST(Command, AnUnknownOptionExits64) {
  binary run({"run", "--konfig", "x"});
  EXPECT_EQ(run.wait(), 64);
}

TEST(Check, AGoodConfigurationExitsZero) {
  const world world;
  binary check({"check", "--config", world.write(world.configuration())});
  EXPECT_EQ(check.wait(), 0) << check.error();
  EXPECT_NE(check.out().find("good, 3 upstreams"), std::string::npos) << check.out();
}

TEST(Check, NamesEveryProblemWithFileLineAndColumnAndExitsTwo) {
  const world world;
  const auto path = world.write(world.configuration() + "limitz: {}\nzone: 5x\nbalance: best\n");
  binary check({"check", "--config", path});
  EXPECT_EQ(check.wait(), 2);
  EXPECT_NE(check.error().find(path + ":9:1: limitz: "), std::string::npos) << check.error();
  EXPECT_NE(check.error().find(path + ":11:10: balance: "), std::string::npos) << check.error();
}

TEST(Check, ProbePrintsAVerdictPerServerAndExitsThreeIfOneFails) {
  const world world;
  const auto path = world.write(world.configuration());
  binary good({"check", "--config", path, "--probe"});
  EXPECT_EQ(good.wait(), 0) << good.out() << good.error();
  world.servers[1]->kill();
  world.servers[2]->answer("/readyz", demo::failing_readyz({"etcd"}));
  binary bad({"check", "--config", path, "--probe"});
  EXPECT_EQ(bad.wait(), 3);
  EXPECT_NE(bad.out().find("cp1: ready"), std::string::npos) << bad.out();
  EXPECT_NE(bad.out().find("cp2: refused"), std::string::npos) << bad.out();
  EXPECT_NE(bad.out().find("cp3: not_ready: etcd"), std::string::npos) << bad.out();
}

TEST(Run, ABadConfigurationExitsTwoWithTheMessagesOfCheck) {
  const world world;
  const auto path = world.write(world.configuration() + "limitz: {}\n");
  binary check({"check", "--config", path});
  binary run({"run", "--config", path});
  EXPECT_EQ(run.wait(), 2);
  check.wait();
  EXPECT_EQ(run.error(), check.error());
}

TEST(Run, ABusyPortExitsOneAndSaysSo) {
  const world world;
  const auto path = world.write(world.configuration());
  binary first({"run", "--config", path});
  ASSERT_TRUE(answers(world.admin, "/livez", 200)) << first.error();
  binary second({"run", "--config", path});
  EXPECT_EQ(second.wait(), 1);
  EXPECT_NE(second.error().find("cannot listen on 127.0.0.1:" + std::to_string(world.port)),
            std::string::npos)
      << second.error();
  EXPECT_NE(second.error().find("in use"), std::string::npos) << second.error();
}

TEST(Run, ABusyPortIsWaitedForIfAskedToAndTakenWhenItIsFree) {
  world world;
  const auto path = world.write(world.configuration());
  auto holder = std::make_unique<binary>(std::vector<std::string>{"run", "--config", path});
  ASSERT_TRUE(answers(world.admin, "/readyz", 200)) << holder->error();
  // Beside the busy port one that is free, and an admin port of its own.
  const auto busy = "127.0.0.1:" + std::to_string(world.port);
  const int beside = free_port();
  auto text = world.configuration();
  text.replace(text.find(busy), busy.size(),
               "[\"" + busy + "\", \"127.0.0.1:" + std::to_string(beside) + "\"]");
  const int admin = free_port();
  const auto old_admin = std::to_string(world.admin);
  text.replace(text.find(old_admin), old_admin.size(), std::to_string(admin));
  binary waiting({"run", "--wait-for-port", "--config", world.folder.write("second.yaml", text)});
  ASSERT_TRUE(becomes(admin, "cp1", "ready")) << waiting.error();
  EXPECT_TRUE(answers(admin, "/readyz", 503));
  EXPECT_NE(get(admin, "/metrics").body.find("\nkubelane_ready 0\n"), std::string::npos);
  EXPECT_TRUE(answers(admin, "/livez", 200));
  EXPECT_NE(waiting.error().find("waiting for a port that another process holds"),
            std::string::npos);
  EXPECT_FALSE(line_client(beside).connected());

  holder->signal(SIGTERM);
  EXPECT_EQ(holder->wait(), 0);
  EXPECT_TRUE(poll_until([&] { return line_client(world.port).ask("name").has_value(); }));
  EXPECT_TRUE(line_client(beside).ask("name"));
  EXPECT_TRUE(answers(admin, "/readyz", 200));
  EXPECT_NE(get(admin, "/metrics").body.find("\nkubelane_ready 1\n"), std::string::npos);
}

TEST(Run, ABusyAdminPortIsRetriedWhileProxyingGoesOn) {
  world world;
  auto other_admin = free_port();
  const auto text = world.configuration();
  binary holder({"run", "--config", world.write(text)});
  ASSERT_TRUE(answers(world.admin, "/readyz", 200));
  // The same admin port, another client port.
  auto second_text = text;
  const auto old_port = std::to_string(world.port);
  second_text.replace(second_text.find(old_port), old_port.size(), std::to_string(other_admin));
  binary second({"run", "--config", world.folder.write("second.yaml", second_text)});
  EXPECT_TRUE(second.says("cannot open the admin port")) << second.error();
  EXPECT_TRUE(second.says("upstream ready")) << second.error();
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.wait(), 0);
  EXPECT_TRUE(answers(world.admin, "/readyz", 200)) << second.error();
}

TEST(Status, ExitsZeroReadyOneNotReadyTwoNoAnswer) {
  const world world;
  const auto admin = "127.0.0.1:" + std::to_string(world.admin);
  binary none({"status", "--admin", admin});
  EXPECT_EQ(none.wait(), 2);
  EXPECT_NE(none.error().find("no answer from " + admin), std::string::npos) << none.error();

  binary run({"run", "--config", world.write(world.configuration())});
  ASSERT_TRUE(answers(world.admin, "/readyz", 200)) << run.error();
  binary ready({"status", "--admin", admin});
  EXPECT_EQ(ready.wait(), 0);
  EXPECT_NE(ready.out().find("cp1"), std::string::npos) << ready.out();
  binary json({"status", "--admin", admin, "--json"});
  EXPECT_EQ(json.wait(), 0);
  EXPECT_EQ(json.out().front(), '{');

  for (const auto& server : world.servers) server->kill();
  ASSERT_TRUE(answers(world.admin, "/readyz", 503)) << run.error();
  binary not_ready({"status", "--admin", admin});
  EXPECT_EQ(not_ready.wait(), 1);
}

TEST(Status, AnAddressThatIsNoneIsAUsageError) {
  binary run({"status", "--admin", "nonsense::1:x"});
  EXPECT_EQ(run.wait(), 64);
}

// What it says of real clusters is proved in tests/e2e/etcd.
TEST(EtcdStatus, ACommandLineThatMakesNoSenseIsExplained) {
  const world world;
  const auto says = [](std::vector<std::string> words, const std::string& expected) {
    words.insert(words.begin(), {"etcd", "status"});
    binary run(words);
    EXPECT_EQ(run.wait(), 64);
    EXPECT_NE(run.error().find(expected), std::string::npos) << run.error();
  };
  says({}, "--endpoints is required");
  says({"--endpoints", "127.0.0.1:2379"}, "write https://127.0.0.1:2379");
  says({"--endpoints", "https://127.0.0.1:2379"}, "needs --cacert");
  says({"--endpoints", "http://127.0.0.1:2379", "--cert", "x"}, "--cert and --key belong together");
  says({"--endpoints", "https://127.0.0.1:2379", "--cacert", world.folder / "none"},
       "none: No such file or directory");
  says({"--endpoints", "http://127.0.0.1:2379", "--domains", "a"}, "write NAME=MEMBER+MEMBER");
  says({"--endpoints", "http://127.0.0.1:2379", "--remove", "a", "--without", "b"}, "excludes");
}

TEST(EtcdStatus, NobodyWhoAnswersExitsThreeWithinThreeSeconds) {
  const silent_listener silent;
  const auto url = "http://127.0.0.1:" + std::to_string(silent.address().port());
  const auto began = std::chrono::steady_clock::now();
  binary run({"etcd", "status", "--endpoints", url + ",http://127.0.0.1:1", "--json"});
  EXPECT_EQ(run.wait(), 3);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(3));
  EXPECT_NE(run.out().find(url + ": connect timed out"), std::string::npos) << run.out();
  EXPECT_NE(run.out().find("http://127.0.0.1:1: connection refused"), std::string::npos)
      << run.out();
}

}  // namespace
}  // namespace kubelane::test
