#include "proxy/headline.hpp"

#include "health/quorum.hpp"

namespace kubelane::proxy {
namespace {

using health::membership;
using health::state;

bool is_leaving(const upstream_status& one) {
  return one.removed || one.member == membership::leaving;
}

std::string servers(int count) {
  return count == 1 ? "1 API server" : std::to_string(count) + " API servers";
}

int count_unknown(const pool_status& status) {
  int count = 0;
  for (const auto& one : status.upstreams)
    count += !one.removed && one.state == state::unknown && one.cause.empty() ? 1 : 0;
  return count;
}

sentence how_many(const pool_status& status, const quorum_view& count) {
  const auto of_all = " of " + servers(count.members);
  if (count.members == 0) return {tone::bad, "There is no API server to use.", std::nullopt};
  if (count.ready == count.members)
    return {tone::good,
            count.members == 1 ? "The API server is ready."
                               : "All " + servers(count.members) + " are ready.",
            std::nullopt};
  if (count_unknown(status) == count.members)
    return {tone::warning, "None" + of_all + " has been asked yet.", std::nullopt};
  if (status.panic)
    return {tone::bad, "None" + of_all + " looks usable: every one is tried (panic mode).",
            std::nullopt};
  if (count.ready == 0)
    return {tone::bad, "None" + of_all + " is ready: the best one left is used.", std::nullopt};
  const bool one = count.ready == 1;
  return {tone::warning,
          std::to_string(count.ready) + of_all + (one ? " is ready." : " are ready."),
          std::nullopt};
}

tone tone_of(const upstream_status& one) {
  switch (one.state) {
    case state::ready:
    case state::unknown:
    case state::slow:
    case state::shutting_down:
      return tone::warning;
    case state::not_ready:
    case state::refused:
    case state::hung:
    case state::dead:
    case state::impostor:
    case state::unresolved:
      return tone::bad;
  }
  return tone::bad;
}

/// "dead: no answer from its host"; without the name.
std::string condition(const upstream_status& one) {
  switch (one.state) {
    case state::ready:
      return "ready, with a reservation: " + one.cause;
    case state::unknown:
      return one.cause.empty() ? "not known yet: it has not been asked" : "not known: " + one.cause;
    case state::slow:
      return "slow: its checks time out, but data still comes from it";
    case state::shutting_down:
      return "shutting down: it says so itself, and serves on for now";
    case state::not_ready:
      return "not ready: " + one.cause;
    case state::refused:
      return "down: its host answers, but nothing listens on the port (refused)";
    case state::hung:
      return "down: its host answers, but the API server does not (hung)";
    case state::dead:
      return "down: no answer from its host (dead)";
    case state::impostor:
      return "not trusted: " + one.cause + " (impostor)";
    case state::unresolved:
      return "without an address: nobody answers for its name (unresolved)";
  }
  return "?";
}

bool needs_mention(const upstream_status& one) {
  return !one.removed && (one.state != state::ready || !one.cause.empty());
}

sentence leaving(const upstream_status& one) {
  const auto count = std::to_string(one.connections);
  return {tone::warning,
          one.name + " is leaving: it is no longer wanted, and has " + count +
              (one.connections == 1 ? " connection left." : " connections left."),
          std::nullopt};
}

/// In plain words, where the verdict alone leaves a newcomer with a question.
const char* consequence(int spare) {
  if (spare < 0) return "; the cluster cannot be changed.";
  return spare == 0 ? "; the cluster can lose no other." : ".";
}

sentence etcd(const pool_status& status, const std::optional<quorum_view>& view) {
  if (!view)
    return {tone::good, "etcd is external: kubelane does not see its members.", std::nullopt};
  if (view->spare < 0 && view->spare + count_unknown(status) >= 0)
    return {tone::warning, "etcd: not known yet.", std::nullopt};
  const auto verdict = health::quorum::in_words({view->members, view->ready}, "members ready");
  const auto how = view->spare < 0                ? tone::bad
                   : view->ready == view->members ? tone::good
                                                  : tone::warning;
  return {how, "etcd, as this node sees it: " + verdict + consequence(view->spare), std::nullopt};
}

}  // namespace

const char* to_string(tone value) noexcept {
  switch (value) {
    case tone::good:
      return "good";
    case tone::warning:
      return "warning";
    case tone::bad:
      return "bad";
  }
  return "?";
}

// Servers of before stand in for names that were not answered yet; beside that, one that leaves is
// no member any more.
quorum_view quorum_of(const pool_status& status) {
  const auto stands_in = [](const upstream_status& one) {
    return one.member == membership::leaving && !one.removed;
  };
  const auto is_open = [](const upstream_status& one) {
    return !is_leaving(one) && one.state == state::unresolved;
  };
  const auto& all = status.upstreams;
  const bool has_stand_ins = std::any_of(all.begin(), all.end(), stands_in);
  const bool has_open_names = std::any_of(all.begin(), all.end(), is_open);
  quorum_view view;
  for (const auto& one : all) {
    if (is_leaving(one) ? !(stands_in(one) && has_open_names) : is_open(one) && has_stand_ins)
      continue;
    ++view.members;
    if (one.state == state::ready) ++view.ready;
  }
  view.majority = health::quorum::majority(view.members);
  view.spare = health::quorum::spare(view.members, view.ready);
  return view;
}

std::vector<sentence> headline(const pool_status& status, const circumstances& beside) {
  std::vector<sentence> result = {how_many(status, quorum_of(status))};
  for (const auto& one : status.upstreams)
    if (needs_mention(one))
      result.push_back({tone_of(one), one.name + " is " + condition(one), one.since});
  for (const auto& one : status.upstreams)
    if (is_leaving(one)) result.push_back(leaving(one));
  result.push_back(etcd(status, beside.quorum));
  const auto note = [&](bool holds, const char* text) {
    if (holds) result.push_back({tone::warning, text, std::nullopt});
  };
  note(status.resets_withheld,
       "Connections stay where they are: no other API server has answered since.");
  note(beside.fallback,
       "The configuration file cannot be used: this is the last one that could be.");
  note(beside.observing,
       "Observe mode: connections that would be closed are counted, and stay where they are.");
  if (!beside.waiting.empty())
    result.push_back({tone::bad, "Not serving yet: " + beside.waiting + ".", std::nullopt});
  note(beside.stopping, "This kubelane is stopping.");
  return result;
}

const char* meaning(const upstream_status& of) noexcept {
  if (is_leaving(of)) return "is no longer wanted: its connections leave";
  switch (of.state) {
    case state::ready:
      return of.cause.empty() ? "answers that it is ready"
                              : "answers, and its readiness is not certain";
    case state::unknown:
      return of.cause.empty() ? "has not been asked yet" : "cannot be asked: this node's trouble";
    case state::slow:
      return "answers checks too late, but data still comes from it";
    case state::shutting_down:
      return "says that it shuts down, and serves on for now";
    case state::not_ready:
      return "answers that it is not ready";
    case state::refused:
      return "does not listen: its host answers, its port refuses";
    case state::hung:
      return "is silent, although its host answers";
    case state::dead:
      return "has a host that does not answer at all";
    case state::impostor:
      return "cannot prove that it is the API server";
    case state::unresolved:
      return "has a name without an address";
  }
  return "";
}

const char* advice(const upstream_status& of) noexcept {
  if (is_leaving(of)) return "";
  switch (of.state) {
    case state::ready:
      return of.cause.empty() ? "" : "Look at the cause; 401 or 403: give it a client certificate.";
    case state::unknown:
      return of.cause.empty() ? "" : "Look at this node's own network.";
    case state::slow:
      return "Look at its load.";
    case state::shutting_down:
      return "Nothing: somebody restarts it.";
    case state::not_ready:
      return "Look at the check that fails; etcd: at the etcd member on its host.";
    case state::refused:
      return "Start it.";
    case state::hung:
      return "Look at the process.";
    case state::dead:
      return "Look at the host and the network to it.";
    case state::impostor:
      return "Look at who has that address, and at its certificate.";
    case state::unresolved:
      return "Look at DNS.";
  }
  return "";
}

}  // namespace kubelane::proxy
