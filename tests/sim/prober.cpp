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
  if (!current_->fresh) {
    watched_ = current_->round->request();
    held_.reset();
  }
  return finish(in, outcome::timed_out);
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
  return answer(in, at);
}

probe_report prober::answer(world& in, const api_server& at) {
  switch (at.answer) {
    case readyz::ok:
      return finish(in, outcome::passed);
    case readyz::unauthorized:
      return finish(in, outcome::unauthorized, "401 Unauthorized");
    case readyz::shutdown_failed:
      return finish(in, outcome::shutting_down, "shutdown");
    case readyz::other_failed:
      return finish(in, outcome::not_ready, "poststarthook/x");
    case readyz::etcd_failed: {
      auto report = finish(in, outcome::not_ready, "etcd");
      report.etcd_failed = true;
      return report;
    }
  }
  return finish(in, outcome::timed_out);
}

probe_report prober::finish(world& in, outcome result, std::string detail) {
  probe_report report{.result = result,
                      .reached = current_->reached,
                      .started = current_->started,
                      .finished = in.now};
  report.detail = std::move(detail);
  report.held = !current_->fresh;
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
