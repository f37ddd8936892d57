#include "proxy/status_json.hpp"

#include "health/quorum.hpp"

#include <boost/json.hpp>

#include <ctime>

namespace kubelane::proxy {
namespace {

namespace json = boost::json;

json::object upstream_json(const upstream_status& one, const status_document& document) {
  const auto age =
      std::chrono::duration_cast<milliseconds>(document.steady_now - one.since).count();
  json::object result;
  result["name"] = one.name;
  result["address"] = one.address ? net::to_string(*one.address) : "";
  result["zone"] = one.zone;
  result["membership"] = one.removed ? "leaving" : health::to_string(one.member);
  result["state"] = health::to_string(one.state);
  result["cause"] = one.cause;
  result["since"] = rfc3339(document.unix_now_ms - age);
  result["tier"] = one.tier;
  result["doubtful"] = one.doubtful;
  result["draining"] = one.drained;
  result["connections"] = one.connections;
  if (one.probe)
    result["probe_ms"] = static_cast<double>(one.probe->count()) / 1000;
  else
    result["probe_ms"] = nullptr;
  return result;
}

json::object event_json(const state_change& change) {
  json::object result;
  result["at"] = rfc3339(change.at_ms);
  result["upstream"] = change.upstream;
  result["from"] = change.from;
  result["to"] = change.to;
  result["cause"] = change.cause;
  return result;
}

}  // namespace

std::string rfc3339(std::int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[40];
  const auto length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof text - length, ".%03dZ", static_cast<int>(unix_ms % 1000));
  return text;
}

quorum_view quorum_of(const pool_status& status) {
  quorum_view view;
  for (const auto& one : status.upstreams) {
    if (one.removed) continue;
    ++view.members;
    if (one.state == health::state::ready) ++view.ready;
  }
  view.majority = health::quorum::majority(view.members);
  view.spare = health::quorum::spare(view.members, view.ready);
  return view;
}

std::string to_json(const status_document& document) {
  json::object result;
  result["version"] = document.version;
  result["ready"] = document.ready;
  result["panic"] = document.pool.panic;
  json::array upstreams;
  for (const auto& one : document.pool.upstreams) upstreams.push_back(upstream_json(one, document));
  result["upstreams"] = std::move(upstreams);
  if (document.quorum) {
    json::object quorum;
    quorum["members"] = document.quorum->members;
    quorum["majority"] = document.quorum->majority;
    quorum["ready"] = document.quorum->ready;
    quorum["spare"] = document.quorum->spare;
    quorum["verdict"] =
        health::quorum::in_words({document.quorum->members, document.quorum->ready});
    result["quorum"] = std::move(quorum);
  } else {
    result["quorum"] = nullptr;
  }
  result["connections"] = document.connections;
  json::array events;
  if (document.events != nullptr)
    for (const auto& change : *document.events) events.push_back(event_json(change));
  result["events"] = std::move(events);
  return json::serialize(result) + "\n";
}

std::string readiness_text(const pool_status& status, bool ready) {
  std::string text;
  for (const auto& one : status.upstreams) {
    if (one.removed) continue;
    text += one.state == health::state::ready ? "[+]" : "[-]";
    text += one.name + ' ' + health::to_string(one.state);
    if (!one.cause.empty()) text += ": " + one.cause;
    text += '\n';
  }
  return text + (ready ? "ready\n" : "not ready\n");
}

}  // namespace kubelane::proxy
