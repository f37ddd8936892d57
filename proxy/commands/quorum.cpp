#include "health/quorum.hpp"

#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace kubelane::commands {
namespace {

namespace quorum = health::quorum;

struct domain {
  std::string name;
  int members = 0;
};

struct quorum_options {
  std::vector<int> members;
  std::vector<std::string> domains;  ///< each `NAME=N`
};

// What the loss of one of `zones` does to writes, with the members spread as evenly as can be.
const char* after_a_zone(int members, int zones) {
  return quorum::lose({members, members}, quorum::largest_share(members, zones)).met() ? "go on"
                                                                                       : "stop";
}

void print(const std::vector<int>& members) {
  std::cout << "                              WRITES AFTER THE LOSS OF ONE ZONE OF\n"
               "MEMBERS  MAJORITY  TOLERATES       1       2       3\n";
  for (const int count : members) {
    std::cout << std::setw(7) << count << std::setw(10) << quorum::majority(count) << std::setw(11)
              << quorum::tolerated(count);
    for (const int zones : {1, 2, 3}) std::cout << std::setw(8) << after_a_zone(count, zones);
    std::cout << '\n';
  }
}

// What each domain's loss leaves.
void print(const std::vector<domain>& domains) {
  const int members = std::accumulate(domains.begin(), domains.end(), 0,
                                      [](int sum, const domain& one) { return sum + one.members; });
  std::cout << members << " members, majority " << quorum::majority(members) << ", tolerates "
            << quorum::tolerated(members) << "\nLOST        LEFT  WRITES\n";
  for (const auto& one : domains) {
    const auto after = quorum::lose({members, members}, one.members);
    std::cout << std::left << std::setw(10) << one.name << std::right << std::setw(6) << after.up
              << "  " << quorum::writes_in_words(after) << '\n';
  }
}

// Empty if `text` is NAME=N with N in 1..1000, else what is wrong.
std::string check_domain(const std::string& text) {
  const auto equals = text.rfind('=');
  const auto digits = equals == std::string::npos ? "" : text.substr(equals + 1);
  const bool is_number = !digits.empty() && digits.size() <= 4 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (equals != 0 && is_number && std::stoi(digits) >= 1 && std::stoi(digits) <= 1000) return {};
  return "`" + text + "` is no domain: write NAME=MEMBERS, as in a=2";
}

int show(const quorum_options& options) {
  if (options.domains.empty() || !options.members.empty())
    print(options.members.empty() ? std::vector<int>{1, 2, 3, 4, 5, 6, 7} : options.members);
  if (options.domains.empty()) return 0;
  std::vector<domain> domains;
  for (const auto& text : options.domains) {
    const auto equals = text.rfind('=');
    domains.push_back({text.substr(0, equals), std::stoi(text.substr(equals + 1))});
  }
  print(domains);
  return 0;
}

}  // namespace

void add_quorum(CLI::App& app, int& status) {
  auto options = std::make_shared<quorum_options>();
  auto* command =
      app.add_subcommand("quorum", "members, majority and failures tolerated, of etcd's kind");
  command->add_option("N", options->members, "numbers of members; 1 to 7 if left out")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--domains", options->domains,
                   "members in each failure domain, as a=2,b=1: what each one's loss leaves")
      ->delimiter(',')
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(check_domain);
  command->callback([options, &status] { status = show(*options); });
}

}  // namespace kubelane::commands
