#include "etcd/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace kubelane::etcd {
namespace {

namespace quorum = health::quorum;

using row = std::vector<std::string>;

std::string upper(std::string_view text) {
  std::string result;
  for (const char letter : text)
    result += letter == '_'
                  ? ' '
                  : static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
  return result;
}

std::string bytes(std::uint64_t count) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(count);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string clock(const member_view& one) {
  if (!one.clock_apart) return one.status ? "right" : "-";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f s", static_cast<double>(one.clock_apart->count()) / 1000);
  return text;
}

std::string role(const member_view& one, const cluster_view& in) {
  if (!one.votes()) return "learner";
  return one.listed.id == in.leader ? "leader" : "voter";
}

std::string may(const cluster_view& in, const member_view& one, intent wanted) {
  const auto verdict = decide(in, one, wanted, "");
  if (verdict.safe) return "yes";
  const bool only_leads =
      verdict.reasons.size() == 1 && in.leader == one.listed.id && verdict.after.met();
  return only_leads ? "leader first" : "no";
}

std::string state_words(const member_view& one) {
  auto text = std::string(to_string(one.state));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::vector<row> member_rows(const cluster_view& in) {
  std::vector<row> rows = {{"MEMBER", "ID", "ROLE", "STATE", "LAG", "DB (IN USE)", "CLOCK",
                            "VERSION", "REBOOT", "REMOVE", "ENDPOINT"}};
  for (const auto& one : in.members) {
    const auto& status = one.status;
    const auto& urls = one.listed.client_urls;
    rows.push_back(
        {one.name(), to_hex(one.listed.id), role(one, in), state_words(one),
         status ? std::to_string(one.lag) : "-",
         status ? bytes(status->db_size) + " (" + bytes(status->db_size_in_use) + ")" : "-",
         clock(one), status ? status->version : "-", may(in, one, intent::without),
         may(in, one, intent::remove),
         !one.endpoint.empty() ? one.endpoint
         : urls.empty()        ? "-"
                               : urls.front()});
  }
  return rows;
}

std::string table(const std::vector<row>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& one : rows)
    for (std::size_t i = 0; i < one.size(); ++i) widths[i] = std::max(widths[i], one[i].size());
  std::string text;
  for (const auto& one : rows) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      text += one[i];
      if (i + 1 < one.size()) text += std::string(widths[i] - one[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string domain_text(const std::vector<domain_loss>& domains) {
  std::vector<row> rows = {{"LOST", "MEMBERS", "LEFT", "WRITES, IF IT WERE LOST NOW"}};
  for (const auto& one : domains) {
    std::string names;
    for (const auto& name : one.members) names += (names.empty() ? "" : "+") + name;
    rows.push_back({one.name, names.empty() ? "-" : names, std::to_string(one.now.up),
                    quorum::writes_in_words(one.now)});
  }
  return "\n" + table(rows);
}

std::string decision_text(const decision& of) {
  const bool removes = of.wanted == intent::remove;
  std::string text = "\n";
  text += of.safe ? "SAFE NOW: " : "NOT NOW: ";
  text += (removes ? "remove " : "reboot or stop ") + of.member + "\n";
  for (const auto& why : of.reasons) text += "  - " + why + "\n";
  if (of.safe && of.before != of.after)
    text += "  meanwhile " + quorum::in_words(of.after, "up") + "\n";
  for (const auto& more : of.notes) text += "  note: " + more + "\n";
  int number = 0;
  for (const auto& one : of.steps) {
    text += "  " + std::to_string(++number) + ". " + one.what + "\n";
    if (!one.command.empty()) text += "       " + one.command + "\n";
  }
  return text;
}

std::string problem_text(const problem& of) {
  const bool warns = of.how == problem::severity::warning;
  return std::string(warns ? "warning: " : "notice: ") + of.rule + ": " + of.message + "\n";
}

}  // namespace

int exit_status_of(const cluster_view& view, const std::optional<decision>& asked) {
  switch (view.is) {
    case verdict::no_answer:
      return 3;
    case verdict::no_quorum:
      return 2;
    case verdict::healthy:
    case verdict::degraded:
      break;
  }
  if (asked) return asked->safe ? 0 : 1;
  return view.is == verdict::healthy ? 0 : 1;
}

std::string report_text(const report& of) {
  const auto& view = of.view;
  auto text = "etcd: " + upper(to_string(view.is));
  if (view.is == verdict::no_answer) {
    text += ": no endpoint told who the members are\n";
  } else {
    text += "; voters: ";
    text += view.leader == nobody && view.voters.met()
                ? std::to_string(view.voters.up) + " of " + std::to_string(view.voters.members) +
                      " answer, and none has a leader\n"
                : quorum::in_words(view.voters, "up") + "\n";
    const auto* leader = view.find(view.leader);
    text += "cluster " + to_hex(view.cluster) + ", ";
    text += view.leader == nobody
                ? "no leader"
                : "leader " + (leader != nullptr ? leader->name() : to_hex(view.leader)) +
                      ", term " + std::to_string(view.term);
    text += "\n\n" + table(member_rows(view));
  }
  if (!of.domains.empty()) text += domain_text(of.domains);
  if (of.asked) text += decision_text(*of.asked);
  if (!view.problems.empty()) text += "\n";
  for (const auto& one : view.problems) text += problem_text(one);
  return text;
}

}  // namespace kubelane::etcd
