#include "proxy/status_json.hpp"

#include "health/quorum.hpp"
#include "proxy/event_json.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace kubelane::proxy {
namespace {

namespace json = boost::json;

/// All of them, once a second and page, would be work that connections wait for.
constexpr std::size_t shown_events = 100;

/// The same for one moment each time it is asked: nothing is rounded that moves with the clock.
std::int64_t unix_ms(time_point at, const status_document& document) {
  const auto ms = [](time_point of) {
    return std::chrono::floor<milliseconds>(of.time_since_epoch()).count();
  };
  return document.unix_now_ms - (ms(document.steady_now) - ms(at));
}

/// Pairs of Unix time in milliseconds and microseconds, null where there was no answer.
json::array history_json(const probe_history& of) {
  json::array result;
  result.reserve(of.size());
  for (std::size_t i = 0; i < of.size(); ++i) {
    json::array pair = {of[i].at_ms};
    if (of[i].microseconds)
      pair.push_back(*of[i].microseconds);
    else
      pair.push_back(nullptr);
    result.push_back(std::move(pair));
  }
  return result;
}

void add_notes(json::object& to, upstream_id id, const status_document& document) {
  static const upstream_notes none;
  const auto* notes = &none;
  if (document.notes != nullptr)
    if (const auto found = document.notes->find(id); found != document.notes->end())
      notes = &found->second;
  if (notes->certificate_expiry_ms > 0)
    to["certificate_expiry"] = rfc3339(notes->certificate_expiry_ms);
  else
    to["certificate_expiry"] = nullptr;
  to["probe_history"] = history_json(notes->probes);
}

json::object upstream_json(const upstream_status& one, const status_document& document) {
  json::object result;
  result["name"] = one.name;
  result["address"] = one.address ? net::to_string(*one.address) : "";
  result["zone"] = one.zone;
  result["membership"] = one.removed ? "leaving" : health::to_string(one.member);
  result["state"] = health::to_string(one.state);
  result["cause"] = one.cause;
  result["since"] = rfc3339(unix_ms(one.since, document));
  result["means"] = meaning(one);
  result["advice"] = advice(one);
  result["tier"] = one.tier;
  result["doubtful"] = one.doubtful;
  result["draining"] = one.drained;
  result["connections"] = one.connections;
  if (one.probe)
    result["probe_ms"] = static_cast<double>(one.probe->count()) / 1000;
  else
    result["probe_ms"] = nullptr;
  add_notes(result, one.id, document);
  return result;
}

json::array headline_json(const status_document& document) {
  json::array result;
  for (const auto& one : headline(document.pool, document.beside)) {
    json::object sentence;
    sentence["tone"] = to_string(one.how);
    sentence["text"] = one.text;
    if (one.since)
      sentence["since"] = rfc3339(unix_ms(*one.since, document));
    else
      sentence["since"] = nullptr;
    result.push_back(std::move(sentence));
  }
  return result;
}

json::value quorum_json(const std::optional<quorum_view>& view) {
  if (!view) return nullptr;
  json::object result;
  result["members"] = view->members;
  result["majority"] = view->majority;
  result["ready"] = view->ready;
  result["spare"] = view->spare;
  result["verdict"] = health::quorum::in_words({view->members, view->ready});
  return result;
}

}  // namespace

std::string to_json(const status_document& document) {
  json::object result;
  result["version"] = document.version;
  result["node"] = document.node;
  result["pid"] = document.pid;
  result["now"] = rfc3339(document.unix_now_ms);
  result["started"] = rfc3339(document.started_ms);
  result["config"] = document.config_path;
  result["ready"] = document.ready;
  result["stopping"] = document.beside.stopping;
  result["panic"] = document.pool.panic;
  result["observe"] = document.beside.observing;
  result["config_fallback"] = document.beside.fallback;
  result["resets_withheld"] = document.pool.resets_withheld;
  result["headline"] = headline_json(document);
  json::array upstreams;
  for (const auto& one : document.pool.upstreams) upstreams.push_back(upstream_json(one, document));
  result["upstreams"] = std::move(upstreams);
  result["quorum"] = quorum_json(document.beside.quorum);
  result["connections"] = document.connections;
  result["events"] =
      document.events == nullptr ? json::array() : events_json(*document.events, shown_events);
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
