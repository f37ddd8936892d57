#include "prober.hpp"

namespace kubelane::sim {

using namespace std::chrono_literals;
using health::outcome;
using health::phase;
using health::probe_report;

void prober::start(world& in, on which) {
  attempt made{.started = in.now, .reached = phase::connect, .phase_started = in.now};
  const auto& at = in.servers[server_];
  made.swallowed =
      in.random01() < at.probe_loss || (at.fails_each > 0 && ++probes_ % at.fails_each == 0);
  if (held_ && which == on::any_connection && ++on_connection_ < 30) {
    made.reached = phase::answer;
    made.round.emplace(in.now, in.servers[server_].answer_delay);
  } else {
    made.fresh = true;
    on_connection_ = 0;
    made.syn.emplace(in.now, 1000ms);
  }
  current_ = made;
}

std::optional<probe_report> prober::step(world& in) {
  if (!current_) return std::nullopt;
  auto& at = in.servers[server_];
  std::optional<probe_report> report;
  if (current_->reached == phase::connect) report = connect(in, at);
  if (!report && current_->reached == phase::tls) report = handshake(in, at);
  if (!report && current_->reached == phase::answer) report = ask(in, at);
  if (report || in.now - current_->phase_started < limit_) return report;
  return give_up(in);
}

probe_report prober::give_up(world& in) {
  if (!current_->fresh) {
    watched_ = current_->round->request();
    held_.reset();
  }
  const auto round = current_->round;
  const bool awaited = current_->reached == phase::answer && !current_->swallowed;
  auto report = finish(in, outcome::timed_out);
  if (awaited) witnesses_.push_back({*round, report});
  return report;
}

std::optional<probe_report> prober::late_answer(world& in) {
  const auto& at = in.servers[server_];
  std::erase_if(witnesses_,
                [&](const witness& each) { return in.now - each.given_up.finished > 5s; });
  for (auto each = witnesses_.begin(); each != witnesses_.end(); ++each) {
    if (!each->round.step(in, at)) continue;
    auto report = each->given_up;
    witnesses_.erase(each);
    tell(report, at);
    return report;
  }
  return std::nullopt;
}

std::optional<probe_report> prober::connect(world& in, api_server& at) {
  if (!current_->syn->step(in, at)) return std::nullopt;
  if (!at.accepts || at.program == process::gone) {
    held_.reset();
    return finish(in, outcome::refused);
  }
  next_phase(in, phase::tls, 1ms);
  return std::nullopt;
}

std::optional<probe_report> prober::handshake(world& in, api_server& at) {
  if (at.program == process::gone && in.arrives(at)) return finish(in, outcome::lost);
  if (current_->round->step(in, at)) next_phase(in, phase::answer, at.answer_delay);
  return std::nullopt;
}

std::optional<probe_report> prober::ask(world& in, api_server& at) {
  if (at.program == process::gone && in.arrives(at)) {
    held_.reset();
    return finish(in, outcome::lost);
  }
  if (current_->swallowed || !current_->round->step(in, at)) return std::nullopt;
  held_ = held_connection{in.now, 0, in.now + 1s};
  watched_.reset();
  auto report = finish(in, outcome::passed);
  tell(report, at);
  return report;
}

void prober::tell(probe_report& report, const api_server& at) {
  switch (at.answer) {
    case readyz::ok:
      report.result = outcome::passed;
      break;
    case readyz::unauthorized:
      report.result = outcome::unauthorized;
      break;
    case readyz::shutdown_failed:
      report.result = outcome::shutting_down;
      break;
    case readyz::other_failed:
      report.result = outcome::not_ready;
      break;
    case readyz::etcd_failed:
      report.result = outcome::not_ready;
      report.etcd_failed = true;
      break;
  }
}

probe_report prober::finish(world& in, outcome result) {
  probe_report report{.result = result,
                      .reached = current_->reached,
                      .started = current_->started,
                      .finished = in.now};
  report.heard = current_->fresh && current_->reached == phase::answer;
  current_.reset();
  return report;
}

void prober::next_phase(world& in, phase reached, milliseconds processing) {
  current_->reached = reached;
  current_->phase_started = in.now;
  current_->round.emplace(in.now, processing);
}

bool prober::finds_host_silent(world& in) {
  const auto& at = in.servers[server_];
  if (watched_ && watched_->step(in, at)) {
    watched_.reset();
  } else if (watched_ && in.now - watched_->first() >= 1s && watched_->retransmissions() >= 2) {
    watched_.reset();
    return true;
  }
  if (!held_ || current_ || in.now < held_->next_alive) return false;
  if (in.arrives(at)) {
    *held_ = {in.now, 0, in.now + 1s};
    return false;
  }
  held_->next_alive += 1s;
  if (++held_->unanswered <= 3) return false;
  held_.reset();
  return true;
}

bool prober::finds_connection_ended(world& in) {
  const auto& at = in.servers[server_];
  if (!held_ || current_ || at.program != process::gone || !in.arrives(at)) return false;
  held_.reset();
  return true;
}

}  // namespace kubelane::sim
