// State changes outlive the process.

#include "tests/support/poll_until.hpp"
#include "world.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

/// A kubelane with a state directory, which may have been used before.
struct remembering {
  explicit remembering(const world& in)
      : on(in),
        run({"run", "--config", in.write(in.configuration())},
            {"STATE_DIRECTORY=" + (in.folder / "state")}) {
    ready = true;
    for (const char* name : {"cp1", "cp2", "cp3"})
      ready = ready && becomes(in.admin, name, "ready");
  }

  std::string events() const { return get(on.admin, "/events").body; }
  std::size_t count(const std::string& part) const {
    std::size_t found = 0;
    const auto text = events();
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  const world& on;
  binary run;
  bool ready = false;
};

std::string file_of(const world& in) {
  std::ifstream file(in.folder / "state/events.jsonl");
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Events : testing::Test {
  Events() { std::filesystem::create_directory(on.folder / "state"); }
  world on;
};

TEST_F(Events, OfAKilledProcessAreThereInTheNext) {
  {
    remembering first(on);
    ASSERT_TRUE(first.ready) << first.run.error();
    on.servers[1]->kill();
    ASSERT_TRUE(becomes(on.admin, "cp2", "refused"));
    ASSERT_TRUE(poll_until([&] { return file_of(on).find("refused") != std::string::npos; }));
    first.run.signal(SIGKILL);
    first.run.wait();
  }
  on.servers[1]->with([](demo::apiserver& server) { server.listen(); });
  remembering second(on);
  ASSERT_TRUE(second.ready) << second.run.error();
  EXPECT_EQ(second.count("\"to\":\"refused\""), 1U) << second.events();
  EXPECT_EQ(second.count("\"from\":\"unknown\",\"to\":\"ready\""), 6U) << second.events();
  const auto status = json::parse(get(on.admin, "/status").body);
  EXPECT_EQ(status.at("events").as_array().size(), 7U);
}

/// Whether each upstream's state is what the last of its changes led to.
bool is_shown_as_told(const json::value& status) {
  std::map<std::string, std::string> told;
  for (const auto& one : status.at("events").as_array())
    told[one.at("upstream").as_string().c_str()] = one.at("to").as_string().c_str();
  for (const auto& one : status.at("upstreams").as_array()) {
    const auto change = told.find(one.at("name").as_string().c_str());
    const auto last = change == told.end() ? "unknown" : change->second;
    if (one.at("state").as_string() != last) return false;
  }
  return true;
}

TEST_F(Events, AStateIsNeverShownBeforeItsChange) {
  for (int start = 0; start < 10; ++start) {
    binary run({"run", "--config", on.write(on.configuration())});
    const auto limit = std::chrono::steady_clock::now() + 10s;
    // Without a pause: it may be shown for no longer than a turn.
    for (long ready = 0; ready < 3;) {
      ASSERT_LT(std::chrono::steady_clock::now(), limit) << run.error();
      const auto answer = get(on.admin, "/status");
      if (answer.status != 200) continue;
      const auto status = json::parse(answer.body);
      ASSERT_TRUE(is_shown_as_told(status)) << answer.body;
      const auto& all = status.at("upstreams").as_array();
      ready = std::count_if(all.begin(), all.end(),
                            [](const auto& one) { return one.at("state").as_string() == "ready"; });
    }
  }
}

TEST_F(Events, AFileThatIsTornAndBrokenCostsWhatIsTornAndBroken) {
  std::ofstream(on.folder / "state/events.jsonl")
      << "{\"at\":\"2026-01-01T00:00:00.000Z\",\"upstream\":\"old\",\"from\":\"ready\",\"to\":"
         "\"dead\",\"cause\":\"\"}\n"
      << std::string(100, '\0') << "\n}{\n{\"at\":\"2026";
  remembering it(on);
  ASSERT_TRUE(it.ready) << it.run.error();
  EXPECT_EQ(it.count("\"upstream\":\"old\""), 1U) << it.events();
  EXPECT_EQ(it.count("\"at\""), 4U) << it.events();
  ASSERT_TRUE(poll_until([&] { return file_of(on).find("\"cp3\"") != std::string::npos; }));
  EXPECT_NE(file_of(on).find("{\"at\":\"2026\n{\"at\""), std::string::npos) << file_of(on);
}

TEST_F(Events, ADirectoryThatCannotBeWrittenIsWarnedOfOnceAndCostsNothingElse) {
  std::filesystem::create_directory(on.folder / "state/events.jsonl");  // for root, too, no file
  remembering it(on);
  ASSERT_TRUE(it.ready) << it.run.error();
  on.servers[0]->kill();
  ASSERT_TRUE(becomes(on.admin, "cp1", "refused"));
  ASSERT_TRUE(it.run.says("cannot keep state changes over a restart"));
  const auto& said = it.run.error();
  EXPECT_EQ(said.find("cannot keep state changes"), said.rfind("cannot keep state changes"));
  EXPECT_EQ(it.count("\"to\":\"refused\""), 1U);
}

TEST_F(Events, WithoutAStateDirectoryTheyAreRememberedAllTheSame) {
  binary run({"run", "--config", on.write(on.configuration())});
  ASSERT_TRUE(becomes(on.admin, "cp1", "ready")) << run.error();
  EXPECT_NE(get(on.admin, "/events").body.find("\"to\":\"ready\""), std::string::npos);
  EXPECT_EQ(run.error().find("state changes"), std::string::npos) << run.error();
}

}  // namespace
}  // namespace kubelane::test
