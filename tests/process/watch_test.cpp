// `kubelane status` and `events` as a person uses them, on a terminal and in a pipe.

#include "pseudo_terminal.hpp"
#include "serving.hpp"
#include "tests/support/poll_until.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

struct Watch : testing::Test {
  Watch() : address("127.0.0.1:" + std::to_string(it.admin)) {}
  void SetUp() override { ASSERT_TRUE(it.ready) << it.run.error(); }

  std::vector<std::string> watching() const { return {"status", "--watch", "--admin", address}; }

  serving it;
  std::string address;
};

std::size_t characters(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t widest(const std::vector<std::string>& lines) {
  std::size_t most = 0;
  for (const auto& line : lines) most = std::max(most, characters(line));
  return most;
}

bool ends_clean(const std::string& written) {
  const std::string end = "\x1b[?7h\x1b[?25h\x1b[?1049l";
  return written.size() > end.size() && written.substr(written.size() - end.size()) == end;
}

TEST_F(Watch, IsLiveOnATerminalAndLeavesItAsItWas) {
  pseudo_terminal terminal(watching(), {120, 40});
  ASSERT_TRUE(terminal.shows("3 of 3 ready")) << terminal.written();
  EXPECT_EQ(terminal.written().rfind("\x1b[?1049h", 0), 0U);
  it.servers[1]->kill();
  EXPECT_TRUE(terminal.shows("cp2 is down: its host answers", 5s)) << terminal.written();
  terminal.type("\x03");  // Ctrl-C
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_TRUE(ends_clean(terminal.written())) << terminal.written();
  EXPECT_EQ(terminal.written().find("\x1b[2J"), std::string::npos) << "flickers";
}

TEST_F(Watch, FollowsTheTerminalsSizeAtOnce) {
  pseudo_terminal terminal(watching(), {120, 40});
  ASSERT_TRUE(terminal.shows("3 of 3 ready"));
  EXPECT_GT(widest(terminal.frame()), 60U);
  terminal.resize({40, 10});
  EXPECT_TRUE(poll_until([&] { return terminal.frame().size() == 10; }, 900ms));
  EXPECT_EQ(widest(terminal.frame()), 40U);
  EXPECT_EQ(terminal.frame().back(), "\u2026");
  terminal.resize({200, 50});
  EXPECT_TRUE(poll_until([&] { return widest(terminal.frame()) > 60; }, 900ms));
  ::kill(terminal.pid(), SIGTERM);
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_TRUE(ends_clean(terminal.written()));
}

TEST_F(Watch, IsPaintedUnlessNoColorIsWanted) {
  pseudo_terminal painted(watching(), {120, 40});
  pseudo_terminal plain(watching(), {120, 40}, {"NO_COLOR=1"});
  ASSERT_TRUE(painted.shows("3 of 3 ready"));
  ASSERT_TRUE(plain.shows("3 of 3 ready"));
  EXPECT_NE(painted.written().find("\x1b[32mready"), std::string::npos);
  EXPECT_EQ(plain.written().find("\x1b[32m"), std::string::npos);
}

TEST_F(Watch, SaysWhenNobodyAnswersAndGoesOnWhenSomebodyDoes) {
  pseudo_terminal terminal(watching(), {120, 40});
  ASSERT_TRUE(terminal.shows("live,"));
  it.run.signal(SIGSTOP);
  EXPECT_TRUE(terminal.shows("no answer from", 5s)) << terminal.written();
  EXPECT_TRUE(terminal.shows("3 of 3 ready"));
  it.run.signal(SIGCONT);
  EXPECT_TRUE(terminal.shows("live,", 5s));
  it.run.signal(SIGKILL);
  EXPECT_TRUE(terminal.shows("no answer from", 5s));
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 2);
}

TEST_F(Watch, IsStoppedByCtrlZAndGoesOn) {
  pseudo_terminal terminal(watching(), {120, 40});
  ASSERT_TRUE(terminal.shows("live,"));
  terminal.type("\x1a");
  EXPECT_TRUE(poll_until([&] { return ends_clean(terminal.written()); }, 3s)) << terminal.written();
  const auto before = terminal.written().size();
  ::kill(terminal.pid(), SIGCONT);
  EXPECT_TRUE(poll_until(
      [&] { return terminal.written().find("\x1b[?1049h", before) != std::string::npos; }, 3s));
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0);
}

TEST_F(Watch, InAPipeItAppendsPlainText) {
  binary piped(watching());
  ASSERT_TRUE(poll_until(
      [&] {
        const auto& text = piped.out();
        return text.find("3 of 3 ready") != text.rfind("3 of 3 ready");
      },
      10s))
      << piped.out();
  EXPECT_EQ(piped.out().find('\x1b'), std::string::npos);
  piped.signal(SIGINT);
  EXPECT_EQ(piped.wait(), 0);
}

TEST_F(Watch, AsJsonEachLineIsOne) {
  auto words = watching();
  words.push_back("--json");
  binary piped(words);
  ASSERT_TRUE(poll_until(
      [&] { return std::count(piped.out().begin(), piped.out().end(), '\n') > 1; }, 10s));
  const auto& text = piped.out();
  EXPECT_TRUE(boost::json::parse(text.substr(0, text.find('\n'))).is_object());
}

TEST_F(Watch, EventsAreThoseOfTheServerThatIsAskedFor) {
  it.servers[1]->kill();
  ASSERT_TRUE(becomes(it.admin, "cp2", "refused"));
  binary all({"events", "--admin", address});
  EXPECT_EQ(all.wait(), 0);
  EXPECT_NE(all.out().find("cp1"), std::string::npos);
  binary one({"events", "--admin", address, "--upstream", "cp2", "--since", "1h"});
  EXPECT_EQ(one.wait(), 0);
  EXPECT_NE(one.out().find("refused"), std::string::npos) << one.out();
  EXPECT_EQ(one.out().find("cp1"), std::string::npos) << one.out();
  binary as_json({"events", "--admin", address, "--json"});
  EXPECT_EQ(as_json.wait(), 0);
  EXPECT_EQ(boost::json::parse(as_json.out()).at("events").as_array().size(), 4U);
  binary none({"events", "--admin", address, "--since", "0s"});
  none.wait();
  EXPECT_EQ(none.out(), "no state changes\n");
}

TEST(EventsCommand, ReadsTheFileWhereNobodyAnswersAndSaysSo) {
  const temporary_folder folder;
  const auto file = folder.write("events.jsonl",
                                 "{\"at\":\"2026-01-01T00:00:00.000Z\",\"upstream\":\"cp1\","
                                 "\"from\":\"ready\",\"to\":\"dead\","
                                 "\"cause\":\"\"}\nbroken\n");
  const auto nobody = "127.0.0.1:" + std::to_string(free_port());
  binary events({"events", "--admin", nobody, "--file", file});
  EXPECT_EQ(events.wait(), 0);
  EXPECT_NE(events.out().find("2026-01-01 00:00:00  cp1   dead   ready"), std::string::npos)
      << events.out();
  EXPECT_NE(events.error().find("no answer from " + nobody), std::string::npos) << events.error();
  EXPECT_NE(events.error().find(file), std::string::npos) << events.error();
  binary lost({"events", "--admin", nobody, "--file", folder / "none"});
  EXPECT_EQ(lost.wait(), 2);
  EXPECT_NE(lost.error().find("cannot be read: No such file"), std::string::npos) << lost.error();
}

TEST(EventsCommand, AWrongDurationOrAddressIsNamed) {
  binary since({"events", "--since", "yesterday"});
  EXPECT_EQ(since.wait(), 64);
  EXPECT_NE(since.error().find("--since yesterday: not a duration"), std::string::npos);
  binary admin({"events", "--admin", "here"});
  EXPECT_EQ(admin.wait(), 64);
  EXPECT_NE(admin.error().find("--admin here: not an address"), std::string::npos);
}

}  // namespace
}  // namespace kubelane::test
