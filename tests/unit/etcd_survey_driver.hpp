#pragma once

#include "etcd/survey.hpp"
#include "etcd/view.hpp"

#include <string>
#include <vector>

namespace kubelane::etcd {

/// The answers of a cluster in which all is well: members e1 (the leader), e2, ... with the IDs 1,
/// 2,
/// ... at https://10.0.0.1:2379, ...; to be spoilt by a test.
struct survey_of {
  static constexpr std::uint64_t cluster = 0xc1;

  explicit survey_of(int members) {
    for (int i = 1; i <= members; ++i) list.push_back(member(i));
    for (int i = 1; i <= members; ++i) answers.endpoints.push_back(endpoint(i));
    answers.agreed = agreement{true, url(1), ""};
  }

  static std::string url(int number) {
    return "https://10.0.0." + std::to_string(number) + ":2379";
  }
  static listed_member member(int number) {
    const auto host = "https://10.0.0." + std::to_string(number);
    return {static_cast<member_id>(number),
            "e" + std::to_string(number),
            {host + ":2380"},
            {host + ":2379"},
            false};
  }
  endpoint_answers endpoint(int number) const {
    endpoint_answers result;
    result.url = url(number);
    result.status = member_status{.id = static_cast<member_id>(number),
                                  .cluster = cluster,
                                  .leader = 1,
                                  .term = 5,
                                  .raft_index = 10'000,
                                  .applied_index = 10'000,
                                  .db_size = 2048,
                                  .db_size_in_use = 1024,
                                  .version = "3.4.23",
                                  .is_learner = false,
                                  .alarms = {}};
    result.members = list;
    return result;
  }

  endpoint_answers& at(int number) {
    return answers.endpoints[static_cast<std::size_t>(number - 1)];
  }
  member_status& status(int number) { return *at(number).status; }

  survey_of& silent(int number, const std::string& trouble = "connection refused") {
    at(number).status.reset();
    at(number).members.reset();
    at(number).trouble = trouble;
    return *this;
  }
  /// These follow `leader` in `term`; nobody: they have none.
  survey_of& follow(std::initializer_list<int> numbers, member_id leader, std::uint64_t term) {
    for (const int number : numbers) {
      status(number).leader = leader;
      status(number).term = term;
    }
    return *this;
  }
  /// Every list says that about a member.
  survey_of& list_as_learner(int number) {
    for (auto& one : answers.endpoints)
      if (one.members) (*one.members)[static_cast<std::size_t>(number - 1)].is_learner = true;
    return *this;
  }

  cluster_view view() const { return judge(answers); }

  std::vector<listed_member> list;
  survey answers;
};

/// Rules of the problems, in order, each with its member: `member-down e2`.
inline std::vector<std::string> rules(const cluster_view& in) {
  std::vector<std::string> result;
  for (const auto& one : in.problems)
    result.push_back(one.rule + (one.member.empty() ? "" : " " + one.member));
  return result;
}

}  // namespace kubelane::etcd
