#include "health/tracker.hpp"

#include <algorithm>
#include <cassert>

namespace kubelane::health {

using namespace std::chrono_literals;

namespace {

constexpr milliseconds one_answer = 400ms;
constexpr auto falls_remembered = 10min;
constexpr milliseconds longest_hold = 60s;
constexpr int most_discarded = 3;

const char* in_words(phase reached) {
  switch (reached) {
    case phase::connect:
      return "connecting";
    case phase::tls:
      return "TLS handshake";
    case phase::answer:
      return "waiting for the answer";
  }
  return "?";
}

std::string or_else(const std::string& detail, const char* fallback) {
  return detail.empty() ? fallback : detail;
}

}  // namespace

tracker::tracker(tracker_settings settings) : settings_(settings) {
  configure(settings);
}

void tracker::configure(tracker_settings settings) {
  assert(settings.fall >= 1 && settings.rise >= 1 && settings.interval > 0ms);
  settings_ = settings;
}

tracker tracker::without_address(tracker_settings settings) {
  tracker made(settings);
  made.state_ = state::unresolved;
  made.cause_ = "no address yet";
  return made;
}

tracker::effect tracker::record(const probe_report& report, time_point now) {
  if (state_ == state::unresolved) return effect::hidden;
  if (discards(report)) return effect::discarded;
  discarded_ = 0;
  last_ = report.result;
  if (report.result == outcome::local_trouble) {
    hide(report, now);
    return effect::hidden;
  }
  local_ = 0;
  if (report.result == outcome::passed || report.result == outcome::unauthorized) {
    pass(report, now);
    return effect::passed;
  }
  const bool first = fail(report.finished);
  fail(report, now);
  return first ? effect::first_failure : effect::failed;
}

void tracker::fail(const probe_report& report, time_point now) {
  switch (report.result) {
    case outcome::timed_out:
      return time_out(report, now);
    case outcome::lost:
      return cut_off(report, now);
    case outcome::not_ready:
      return answer_badly(report, now);
    case outcome::shutting_down:
      return shut_down(report, now);
    case outcome::refused:
      return refuse({report.started, report.finished}, now);
    case outcome::host_silent:
      return die(report.detail, report.started, now);
    case outcome::wrong_certificate:
    case outcome::bad_validity:
    case outcome::not_tls:
      return reject(report, now);
    case outcome::passed:
    case outcome::unauthorized:
    case outcome::local_trouble:
      assert(false);
  }
}

bool tracker::discards(const probe_report& report) {
  if (report.result != outcome::timed_out) return false;
  if (report.loop_lag <= settings_.timeout / 2) return false;
  return ++discarded_ <= most_discarded;
}

bool tracker::fail(time_point known) {
  const bool first = !failing_;
  failing_ = true;
  passes_ = 0;
  last_failure_ = known;
  return first;
}

void tracker::pass(const probe_report& report, time_point now) {
  if (failing_ || passing_since_ == time_point{}) passing_since_ = report.finished;
  failing_ = false;
  failures_ = time_outs_ = cut_offs_ = 0;
  end_silence();
  dial_doubt_ = false;
  first_bad_.reset();
  first_leaving_.reset();
  first_etcd_.reset();
  last_pass_ = {report.started, report.finished};
  const bool unauthorized = report.result == outcome::unauthorized;
  answered_ = report.verified || !unauthorized;
  pass_matter_ = unauthorized       ? matter::unauthorized
                 : !report.verified ? matter::unverified
                                    : matter::plain;
  pass_cause_ = unauthorized       ? or_else(report.detail, "401 Unauthorized")
                : !report.verified ? or_else(report.detail, "identity not verified")
                                   : report.detail;
  if (state_ == state::ready || state_ == state::unknown || !ever_ready_)
    become_ready(now);
  else
    ++passes_;
  acquitted_ = state_ != state::ready;
}

void tracker::time_out(const probe_report& report, time_point now) {
  ++failures_;
  ++time_outs_;
  cut_offs_ = 0;
  if (report.heard) heard(report.finished);
  if (!report.heard && report.started > last_heard_) {
    // The earliest dates the silence, the latest decide when bytes come after all.
    if (silent_.size() >= 2 * static_cast<std::size_t>(settings_.fall))
      silent_.erase(silent_.begin() + 1);
    silent_.push_back(report.started);
  }
  if (state_ == state::dead && !acquitted_) return;
  const auto fall = settings_.fall;
  const auto probes = std::to_string(fall) + " probes timed out (" + in_words(report.reached) + ")";
  if (static_cast<int>(silent_.size()) >= fall) {
    const bool known = state_ == state::hung && !acquitted_;
    if (!known && report.finished - silent_.front() >= usual_time())
      become(state::hung, matter::plain, probes + ", nothing heard from it", now);
  } else if (time_outs_ >= fall) {
    if (state_ != state::slow)
      become(state::slow, matter::plain, probes + ", bytes still come", now);
  } else if (failures_ >= fall && (state_ == state::ready || state_ == state::unknown)) {
    become(state::not_ready, mixed_matter(), "probes fail in several ways", now);
  }
}

// A row of failures of several kinds, too short for each alone.
matter tracker::mixed_matter() const {
  if (first_etcd_) return matter::etcd;
  return first_bad_ ? matter::other : matter::connection;
}

void tracker::answered_late(const probe_report& report, time_point now) {
  if (state_ == state::unresolved || state_ == state::refused) return;
  if (!failing_ || report.started <= last_pass_.started) return;
  if (report.result == outcome::shutting_down) return shut_down(report, now);
  if (report.result != outcome::not_ready) return;
  note_bad_answer(report);
  judge_bad_answer(report, now);
}

void tracker::answer_badly(const probe_report& report, time_point now) {
  note_bad_answer(report);
  if (failures_ == 0 || report.started - counted_bad_ >= one_answer) {
    ++failures_;
    counted_bad_ = report.started;
  }
  judge_bad_answer(report, now);
}

void tracker::note_bad_answer(const probe_report& report) {
  end_silence();
  cut_offs_ = 0;
  answered_ = report.verified;
  const exchange when{report.started, report.finished};
  if (!first_bad_) first_bad_ = when;
  if (!report.etcd_failed)
    first_etcd_.reset();
  else if (!first_etcd_)
    first_etcd_ = when;
}

void tracker::judge_bad_answer(const probe_report& report, time_point now) {
  if (state_ != state::not_ready && !is_worse() && failures_ < settings_.fall) return;
  become(state::not_ready, report.etcd_failed ? matter::etcd : matter::other,
         or_else(report.detail, report.etcd_failed ? "etcd" : "not ready"), now);
}

void tracker::cut_off(const probe_report& report, time_point now) {
  ++failures_;
  ++cut_offs_;
  end_silence();
  const auto detail = or_else(report.detail, "cut off before the answer");
  if (cut_offs_ >= settings_.fall)
    become(state::not_ready, matter::connection, detail, now);
  else if (failures_ >= settings_.fall && !is_worse() && state_ != state::not_ready)
    become(state::not_ready, mixed_matter(), detail, now);
}

void tracker::shut_down(const probe_report& report, time_point now) {
  failures_ = cut_offs_ = 0;
  end_silence();
  first_bad_.reset();
  first_etcd_.reset();
  answered_ = report.verified;
  if (!first_leaving_ || state_ != state::shutting_down)
    first_leaving_ = exchange{report.started, report.finished};
  become(state::shutting_down, matter::plain, or_else(report.detail, "shutdown"), now);
}

void tracker::refuse(exchange when, time_point now) {
  failures_ = cut_offs_ = 0;
  end_silence();
  if (!first_leaving_ || (state_ != state::shutting_down && state_ != state::refused))
    first_leaving_ = when;
  become(state::refused, matter::plain, "connection refused", now);
}

void tracker::die(std::string detail, time_point evidence, time_point now) {
  if (state_ == state::dead && !acquitted_) return;
  dead_evidence_ = std::min(evidence, silence_so_far().value_or(evidence));
  become(state::dead, matter::plain, or_else(detail, "host silent"), now);
}

void tracker::reject(const probe_report& report, time_point now) {
  failures_ = cut_offs_ = 0;
  end_silence();
  answered_ = false;
  if (report.result == outcome::bad_validity) {
    become(state::not_ready, matter::certificate, or_else(report.detail, "certificate validity"),
           now);
  } else {
    const auto* fallback =
        report.result == outcome::not_tls ? "not TLS" : "certificate does not verify";
    become(state::impostor, matter::plain, or_else(report.detail, fallback), now);
  }
}

void tracker::hide(const probe_report& report, time_point now) {
  if (++local_ < settings_.fall || is_worse()) return;
  become(state::unknown, matter::local, or_else(report.detail, "local trouble"), now);
}

bool tracker::dial_refused(time_point now) {
  if (state_ == state::unresolved || (state_ == state::refused && !acquitted_)) return false;
  const bool first = fail(now);
  last_ = outcome::refused;
  refuse({now, now}, now);
  return first;
}

void tracker::dial_failed() {
  if (state_ != state::unresolved) dial_doubt_ = true;
}

bool tracker::host_silent(std::string detail, time_point now) {
  if (state_ == state::unresolved || (state_ == state::dead && !acquitted_)) return false;
  const bool first = fail(now);
  die(std::move(detail), now, now);
  return first;
}

void tracker::heard(time_point at) {
  if (at <= last_heard_) return;
  last_heard_ = at;
  std::erase_if(silent_, [at](time_point started) { return started <= at; });
  if (suspected_ && *suspected_ <= at) suspected_.reset();
  if (!failing_) dial_doubt_ = false;
  if (acquitted_) return;
  const bool was_silent = (state_ == state::hung && silent_.size() < 1u * settings_.fall) ||
                          (state_ == state::dead && at > since_);
  if (was_silent) become(state::slow, matter::plain, "probes failed, but bytes come from it", at);
}

void tracker::suspect(time_point at) {
  if (!suspected_) suspected_ = at;
}

void tracker::end_silence() {
  time_outs_ = 0;
  silent_.clear();
  suspected_.reset();
}

void tracker::settle(company others, time_point now) {
  if (state_ == state::ready || passes_ < settings_.rise) return;
  if (now < held_until_ && others == company::others_in_first_tier) return;
  become_ready(now);
}

void tracker::become_ready(time_point now) {
  const bool rises = ever_ready_ && state_ != state::unknown && state_ != state::ready;
  const auto risen = state_ == state::ready ? risen_ : rises ? std::optional(now) : std::nullopt;
  become(state::ready, pass_matter_, pass_cause_, now);
  ever_ready_ = true;
  risen_ = risen;
}

void tracker::become(state next, matter about, std::string cause, time_point now) {
  matter_ = about;
  cause_ = std::move(cause);
  const bool again = acquitted_;
  acquitted_ = false;
  if ((next == state::hung || next == state::dead) && (next != state_ || again)) convicted_ = now;
  if (next == state_) return;
  if (state_ == state::ready && next != state::unknown) note_fall(now);
  if (next != state::not_ready) {
    first_bad_.reset();
    first_etcd_.reset();
  }
  if (next != state::shutting_down && next != state::refused) first_leaving_.reset();
  state_ = next;
  since_ = now;
  passes_ = 0;
  risen_.reset();
}

void tracker::note_fall(time_point now) {
  std::erase_if(falls_, [now](time_point fall) { return now - fall >= falls_remembered; });
  falls_.push_back(now);
  if (falls_.size() < 2 || settings_.hold_down <= 0ms) return;
  const auto longest = std::max(longest_hold, settings_.hold_down);
  auto hold = settings_.hold_down;
  for (std::size_t fall = 2; fall < falls_.size() && hold < longest; ++fall) hold *= 2;
  held_until_ = now + std::min(hold, longest);
}

bool tracker::is_worse() const {
  return state_ == state::refused || state_ == state::hung || state_ == state::dead ||
         state_ == state::impostor;
}

std::optional<time_point> tracker::silence_so_far() const {
  if (silent_.empty()) return suspected_;
  return suspected_ ? std::min(*suspected_, silent_.front()) : silent_.front();
}

std::optional<time_point> tracker::silence() const {
  return state_ == state::dead && !acquitted_ ? dead_evidence_ : silence_so_far();
}

bool tracker::doubtful() const {
  if (suspected_ || dial_doubt_ || local_ > 0) return true;
  switch (state_) {
    case state::ready:
    case state::unknown:
      return failing_;
    case state::slow:
      return !silent_.empty();
    case state::shutting_down:
      return failures_ > 0;
    case state::not_ready:
      return time_outs_ > 0;
    case state::refused:
    case state::hung:
    case state::dead:
    case state::impostor:
    case state::unresolved:
      return false;
  }
  return false;
}

std::string tracker::cause(time_point now) const {
  if (passes_ == 0 || state_ == state::ready) return cause_;
  if (passes_ < settings_.rise)
    return "passing, " + std::to_string(passes_) + " of " + std::to_string(settings_.rise);
  const auto left = std::chrono::ceil<std::chrono::seconds>(std::max(held_until_ - now, {}));
  return "passing, held down for " + std::to_string(left.count()) + " s";
}

}  // namespace kubelane::health
