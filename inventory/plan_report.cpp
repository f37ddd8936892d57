#include "inventory/json.hpp"
#include "inventory/plan.hpp"
#include "inventory/report.hpp"

namespace kubelane::inventory {
namespace {

std::string quorum_json(const quorum_state& of) {
  return "{\"members\": " + std::to_string(of.members) +
         ", \"majority\": " + std::to_string(of.majority) +
         ", \"tolerated\": " + std::to_string(of.tolerated) + "}";
}

std::string step_json(const plan_step& of) {
  return "    {\"what\": " + json_text(of.what) + ",\n     \"command\": " + json_text(of.command) +
         ",\n     \"changes\": " + json_list(of.hosts.changes) +
         ", \"facts\": " + json_list(of.hosts.facts) +
         ", \"delegates\": " + json_list(of.hosts.delegates) +
         ",\n     \"quorum\": {\"before\": " + quorum_json(of.before) +
         ", \"during\": " + quorum_json(of.during) + ", \"after\": " + quorum_json(of.after) +
         "},\n     \"workers_reconfigured\": " + json_list(of.workers_reconfigured) +
         ",\n     \"verify\": " + json_text(of.verify) + ", \"undo\": " + json_text(of.undo) + "}";
}

std::string hosts_text(const names& hosts) {
  return hosts.empty() ? "none" : join(hosts);
}

std::string quorum_text(const quorum_state& of) {
  return std::to_string(of.members) + (of.members == 1 ? " member" : " members") + ", majority " +
         std::to_string(of.majority) + ", tolerates " + std::to_string(of.tolerated);
}

bool same(const quorum_state& a, const quorum_state& b) {
  return a.members == b.members && a.tolerated == b.tolerated;
}

std::string quorum_course(const plan_step& of) {
  if (same(of.before, of.during) && same(of.before, of.after)) return quorum_text(of.before);
  return quorum_text(of.before) + " -> " + quorum_text(of.during) + " -> " + quorum_text(of.after);
}

std::string indented(const std::string& text, const std::string& by) {
  std::string result = by;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += by;
  }
  return result;
}

std::string step_text(const plan_step& of, std::size_t number) {
  return std::to_string(number) + ". " + of.what + "\n" + indented(of.command, "     ") +
         "\n   changes:   " + hosts_text(of.hosts.changes) +
         "\n   facts of:  " + hosts_text(of.hosts.facts) +
         "\n   delegates: " + hosts_text(of.hosts.delegates) +
         "\n   etcd:      " + quorum_course(of) + "\n   kubelane:  " + of.sees +
         (of.workers_reconfigured.empty()
              ? ""
              : "; new configuration on " + join(of.workers_reconfigured)) +
         "\n   verify:    " + of.verify + "\n   undo:      " + of.undo + "\n";
}

std::string step_markdown(const plan_step& of, std::size_t number) {
  return "## " + std::to_string(number) + ". " + of.what + "\n\n```sh\n" + of.command +
         "\n```\n\n| | |\n|---|---|\n| changes | " + hosts_text(of.hosts.changes) +
         " |\n| gathers facts of | " + hosts_text(of.hosts.facts) + " |\n| delegates to | " +
         hosts_text(of.hosts.delegates) + " |\n| etcd before | " + quorum_text(of.before) +
         " |\n| etcd during | " + quorum_text(of.during) + " |\n| etcd after | " +
         quorum_text(of.after) + " |\n| workers see | " + of.sees +
         " |\n| new kubelane configuration | " + hosts_text(of.workers_reconfigured) +
         " |\n\n- [ ] done\n- [ ] " + of.verify + "\n\nBack: " + of.undo + "\n\n";
}

}  // namespace

std::string plan_json(const plan& of) {
  std::string result = "{\n  \"refused\": ";
  result += of.refused ? "{\"step\": " + json_text(of.refused->step) +
                             ", \"why\": " + json_text(of.refused->why) + "}"
                       : "null";
  result += ",\n  \"steps\": [";
  const char* separator = "\n";
  for (const auto& one : of.steps) {
    result += separator + step_json(one);
    separator = ",\n";
  }
  return result + (of.steps.empty() ? "]" : "\n  ]") + "\n}\n";
}

std::string plan_text(const plan& of) {
  std::string result;
  for (std::size_t i = 0; i < of.steps.size(); ++i)
    result += (i == 0 ? "" : "\n") + step_text(of.steps[i], i + 1);
  for (const auto& note : of.notes) result += "note: " + note + "\n";
  if (of.refused)
    return result + (result.empty() ? "" : "\n") + "refused: " + of.refused->step + "\n  " +
           of.refused->why + "\n";
  return result.empty() ? "nothing to do: the same hosts in the same roles\n" : result;
}

std::string plan_markdown(const plan& of, const std::string& before, const std::string& after) {
  std::string result = "# From " + before + " to " + after + "\n\n";
  for (const auto& note : of.notes) result += "> " + note + "\n\n";
  std::size_t number = 0;
  for (const auto& one : of.steps) result += step_markdown(one, ++number);
  if (of.refused)
    return result + "## Refused: " + of.refused->step + "\n\n" + of.refused->why + "\n";
  return of.steps.empty() ? result + "Nothing to do.\n" : result;
}

}  // namespace kubelane::inventory
