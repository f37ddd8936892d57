// The inventory commands, the man page and the completion, by the binary.

#include "binary.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace kubelane::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* three =
    "[kube_control_plane]\ncp1 ip=10.20.0.11\ncp2 ip=10.20.0.12\ncp3 ip=10.20.0.13\n"
    "[etcd:children]\nkube_control_plane\n[kube_node]\nw1 ip=10.20.0.21\nw2 ip=10.20.0.22\n";

class InventoryCommand : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return folder.write(name, text);
  }

  temporary_folder folder;
};

std::string without(std::string text, const std::string& line) {
  const auto at = text.find(line + "\n");
  return text.erase(at, line.size() + 1);
}

TEST_F(InventoryCommand, CheckExitsTwoOnAnErrorThatIsNotAccepted) {
  const auto good = write("good.ini", three);
  const auto even = write("even.ini", without(three, "cp3 ip=10.20.0.13"));
  binary fine({"inventory", "check", good});
  EXPECT_EQ(fine.wait(), 0) << fine.out();
  binary refused({"inventory", "check", even});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_THAT(refused.out(), HasSubstr("even.ini:4: error: even-etcd: 2 etcd members"));
  binary accepted({"inventory", "check", even, "--accept", "even-etcd"});
  EXPECT_EQ(accepted.wait(), 0) << accepted.out();
}

TEST_F(InventoryCommand, AnUnknownRuleOrHostExits64) {
  const auto good = write("good.ini", three);
  EXPECT_EQ(binary({"inventory", "check", good, "--accept", "evn-etcd"}).wait(), 64);
  EXPECT_EQ(binary({"inventory", "check", good, "--failed", "cp9"}).wait(), 64);
  EXPECT_EQ(binary({"inventory"}).wait(), 64);
}

TEST_F(InventoryCommand, ConfigIsAcceptedByCheck) {
  const auto output = folder / "out";
  binary made({"inventory", "config", write("good.ini", three), "--output", output});
  EXPECT_EQ(made.wait(), 0) << made.error();
  for (const char* host : {"w1", "w2"}) {
    binary checked({"check", "--config", output + "/" + host + ".yaml"});
    EXPECT_EQ(checked.wait(), 0) << checked.error();
    EXPECT_THAT(checked.out(), HasSubstr("3 upstreams"));
  }
}

TEST_F(InventoryCommand, AgainstSaysWhichUpstreamsDiffer) {
  const auto old = write("old.ini", three);
  const auto now = write("new.ini", without(three, "cp1 ip=10.20.0.11"));
  binary made({"inventory", "config", old});
  ASSERT_EQ(made.wait(), 0);
  const auto running = write("config.yaml", made.out());
  binary differs({"inventory", "check", now, "--accept", "even-etcd", "--against", running});
  EXPECT_EQ(differs.wait(), 2);
  EXPECT_THAT(differs.out(), HasSubstr("config-differs: has 10.20.0.11:6443 (cp1)"));
  EXPECT_EQ(binary({"inventory", "check", old, "--against", running}).wait(), 0);
}

TEST_F(InventoryCommand, PlanRefusesTwoMembersAndExitsTwo) {
  binary plan({"inventory", "plan", write("old.ini", three),
               write("new.ini", without(three, "cp3 ip=10.20.0.13")), "--format", "json"});
  EXPECT_EQ(plan.wait(), 2);
  EXPECT_THAT(plan.out(),
              AllOf(HasSubstr("\"refused\": {\"step\": "), HasSubstr("a majority is 2")));
}

TEST_F(InventoryCommand, QuorumSaysWhatEachDomainsLossLeaves) {
  binary quorum({"quorum", "--domains", "a=2,b=1"});
  EXPECT_EQ(quorum.wait(), 0);
  EXPECT_THAT(quorum.out(), AllOf(HasSubstr("3 members, majority 2, tolerates 1"),
                                  HasSubstr("stop, 1 short of a majority")));
  EXPECT_EQ(binary({"quorum", "--domains", "a"}).wait(), 64);
  // Members, majority, tolerated; writes after the loss of one of one, two, three zones.
  binary table({"quorum", "2", "3"});
  EXPECT_EQ(table.wait(), 0);
  EXPECT_THAT(table.out(),
              AllOf(HasSubstr("      2         2          0    stop    stop    stop\n"),
                    HasSubstr("      3         2          1    stop    stop   go on\n")));
}

// Five nodes in 10 ms and 5,000 with host_vars in a second: the limits are wider here, for tests
// run beside others and under sanitizers.
TEST_F(InventoryCommand, FiveThousandNodesWithHostVarsTakeSeconds) {
  fs::create_directory(folder / "host_vars");
  std::string text = three;
  for (int i = 0; i < 5000; ++i) {
    const auto name = "n" + std::to_string(i);
    text += name + "\n";
    write("host_vars/" + name + ".yml", "ip: 10." + std::to_string(30 + i / 250) + ".1." +
                                            std::to_string(i % 250 + 1) + "\nzone: a\n");
  }
  const auto path = write("fleet.ini", text);
  const auto start = std::chrono::steady_clock::now();
  binary check({"inventory", "check", path});
  EXPECT_EQ(check.wait(), 0) << check.out();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

std::set<std::string> words(const std::string& text, const std::string& section, char first) {
  std::istringstream lines(text);
  std::set<std::string> result;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != ' ') inside = line == section;
    if (!inside || line.size() < 3 || line[0] != ' ' || line[2] == ' ') continue;
    auto names = line.substr(2, line.find(' ', 2) - 2);
    std::replace(names.begin(), names.end(), ',', ' ');
    std::istringstream each(names);
    for (std::string name; each >> name;)
      if (first != '-' ? name[0] != '-' : name.starts_with("--")) result.insert(name);
  }
  return result;
}

std::string help(std::vector<std::string> command) {
  command.push_back("--help");
  binary run(command);
  EXPECT_EQ(run.wait(), 0);
  return run.out();
}

// Every command, by its words; those that have subcommands too.
std::vector<std::vector<std::string>> commands() {
  std::vector<std::vector<std::string>> result{{}};
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const auto& name : words(help(result[i]), "Subcommands:", 'a')) {
      auto longer = result[i];
      longer.push_back(name);
      result.push_back(longer);
    }
  }
  return result;
}

std::string contents(const std::string& name) {
  std::ifstream file(std::string(KUBELANE_SOURCE) + "/packaging/" + name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST(ManPage, HasEveryCommandAndOptionOfTheHelp) {
  auto page = contents("kubelane.1");
  page.erase(std::remove(page.begin(), page.end(), '\\'), page.end());
  const auto all = commands();
  EXPECT_GT(all.size(), 8u);
  for (const auto& command : all) {
    const auto text = help(command);
    std::string name;
    for (const auto& word : command) name += (name.empty() ? "" : " ") + word;
    if (!name.empty() && words(text, "Subcommands:", 'a').empty()) {
      EXPECT_THAT(page, HasSubstr(".SS " + name + "\n"));
    }
    for (const auto& option : words(text, "Options:", '-'))
      EXPECT_THAT(page, HasSubstr(option)) << name;
  }
}

// What the completion offers after the words, in bash.
std::set<std::string> completions(const std::vector<std::string>& typed, const std::string& start) {
  std::string list = "kubelane";
  for (const auto& word : typed) list += " '" + word + "'";
  const std::string script = "kubelane() { " KUBELANE_BINARY " \"$@\"; }; source " KUBELANE_SOURCE
                             "/packaging/kubelane.bash; COMP_WORDS=(" +
                             list + " '" + start +
                             "'); COMP_CWORD=" + std::to_string(typed.size() + 1) +
                             "; _kubelane; printf '%s\\n' \"${COMPREPLY[@]}\"";
  std::set<std::string> result;
  ::setenv("SCRIPT", script.c_str(), 1);
  auto* pipe = ::popen("bash -c 'eval \"$SCRIPT\"'", "r");
  char line[256];
  while (::fgets(line, sizeof line, pipe) != nullptr) {
    std::string word(line);
    word.pop_back();
    if (!word.empty()) result.insert(word);
  }
  ::pclose(pipe);
  ::unsetenv("SCRIPT");
  return result;
}

TEST(Completion, OffersWhatTheHelpOffers) {
  for (const auto& command : commands()) {
    const auto text = help(command);
    EXPECT_EQ(completions(command, "--"), words(text, "Options:", '-'));
    const auto names = words(text, "Subcommands:", 'a');
    if (!names.empty()) {
      EXPECT_EQ(completions(command, ""), names);
    }
  }
  EXPECT_EQ(completions({"inventory"}, "pl"), std::set<std::string>{"plan"});
  EXPECT_EQ(completions({"inventory", "plan", "--format"}, "ma"),
            std::set<std::string>{"markdown"});
}

}  // namespace
}  // namespace kubelane::test
