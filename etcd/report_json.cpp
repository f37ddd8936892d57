#include "etcd/report.hpp"

#include <boost/json.hpp>

namespace kubelane::etcd {
namespace {

namespace json = boost::json;
namespace quorum = health::quorum;

json::object quorum_json(const quorum::standing& of) {
  return {{"members", of.members},
          {"majority", quorum::majority(of.members)},
          {"ready", of.up},
          {"spare", of.spare()},
          {"verdict", quorum::in_words(of, "up")}};
}

json::array list(const std::vector<std::string>& texts) {
  json::array result;
  for (const auto& text : texts) result.emplace_back(text);
  return result;
}

json::object member_json(const member_view& one, const cluster_view& in) {
  json::object result;
  result["name"] = one.name();
  result["id"] = to_hex(one.listed.id);
  result["role"] = !one.votes() ? "learner" : one.listed.id == in.leader ? "leader" : "voter";
  result["state"] = to_string(one.state);
  result["cause"] = one.cause;
  result["endpoint"] = one.endpoint;
  result["client_urls"] = list(one.listed.client_urls);
  result["peer_urls"] = list(one.listed.peer_urls);
  const auto add = [&](const char* key, auto member_status::*field) {
    if (one.status)
      result[key] = (*one.status).*field;
    else
      result[key] = nullptr;
  };
  add("version", &member_status::version);
  add("term", &member_status::term);
  add("raft_index", &member_status::raft_index);
  add("applied_index", &member_status::applied_index);
  add("db_size", &member_status::db_size);
  add("db_size_in_use", &member_status::db_size_in_use);
  result["lag"] = one.status ? json::value(one.lag) : json::value(nullptr);
  result["clock_apart_ms"] = one.clock_apart ? one.clock_apart->count() : 0;
  json::array alarms;
  for (const auto& raised : in.alarms)
    if (raised.member == one.listed.id) alarms.emplace_back(raised.kind);
  result["alarms"] = std::move(alarms);
  result["may_reboot"] = decide(in, one, intent::without, "").safe;
  result["may_be_removed"] = decide(in, one, intent::remove, "").safe;
  return result;
}

json::object decision_json(const decision& of) {
  json::array steps;
  for (const auto& one : of.steps)
    steps.push_back(json::object{{"what", one.what}, {"command", one.command}});
  return {{"kind", of.wanted == intent::remove ? "remove" : "without"},
          {"member", of.member},
          {"id", to_hex(of.id)},
          {"safe", of.safe},
          {"reasons", list(of.reasons)},
          {"notes", list(of.notes)},
          {"steps", std::move(steps)},
          {"quorum",
           json::object{{"before", quorum_json(of.before)}, {"after", quorum_json(of.after)}}}};
}

json::object problem_json(const problem& of) {
  return {{"severity", of.how == problem::severity::warning ? "warning" : "notice"},
          {"rule", of.rule},
          {"member", of.member},
          {"message", of.message}};
}

json::object domain_json(const domain_loss& of) {
  return {{"name", of.name},
          {"members", list(of.members)},
          {"survives", of.survives},
          {"now", quorum_json(of.now)}};
}

template <class T, class Convert>
json::array all(const std::vector<T>& of, Convert convert) {
  json::array result;
  for (const auto& one : of) result.push_back(convert(one));
  return result;
}

}  // namespace

std::string report_json(const report& of) {
  const auto& view = of.view;
  const auto* leader = view.find(view.leader);
  json::object result;
  result["verdict"] = to_string(view.is);
  result["exit_status"] = of.exit_status;
  result["cluster_id"] = view.cluster == 0 ? "" : to_hex(view.cluster);
  result["term"] = view.term;
  result["leader"] = view.leader == nobody ? ""
                     : leader != nullptr   ? leader->name()
                                           : to_hex(view.leader);
  result["settled"] = view.settled;
  result["quorum"] = quorum_json(view.voters);
  result["members"] =
      all(view.members, [&](const member_view& one) { return member_json(one, view); });
  result["problems"] = all(view.problems, problem_json);
  result["domains"] = all(of.domains, domain_json);
  result["decision"] = of.asked ? json::value(decision_json(*of.asked)) : json::value(nullptr);
  return json::serialize(result) + "\n";
}

}  // namespace kubelane::etcd
