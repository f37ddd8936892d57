#include "health/quorum.hpp"
#include "proxy/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <iomanip>
#include <iostream>
#include <memory>
#include <vector>

namespace kubelane::commands {
namespace {

void print(const std::vector<int>& members) {
  namespace quorum = health::quorum;
  std::cout << "MEMBERS  MAJORITY  TOLERATES\n";
  for (const int count : members)
    std::cout << std::setw(7) << count << std::setw(10) << quorum::majority(count) << std::setw(11)
              << quorum::tolerated(count) << '\n';
}

}  // namespace

void add_quorum(CLI::App& app, int& status) {
  auto members = std::make_shared<std::vector<int>>();
  auto* command =
      app.add_subcommand("quorum", "members, majority and failures tolerated, of etcd's kind");
  command->add_option("N", *members, "numbers of members; 1 to 7 if left out")
      ->check(CLI::Range(1, 1000));
  command->callback([members, &status] {
    print(members->empty() ? std::vector<int>{1, 2, 3, 4, 5, 6, 7} : *members);
    status = 0;
  });
}

}  // namespace kubelane::commands
