// Random sequences against what must always hold.

#include "pool_driver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using test::milliseconds;
using test::outcome;
using test::pool_driver;
using test::state;
using test::time_point;

const std::vector<std::string> names = {"cp1", "cp2", "cp3", "cp4", "cp5"};

bool is_pass(outcome result) {
  return result == outcome::passed || result == outcome::unauthorized;
}

bool is_silence(outcome result) {
  return result == outcome::timed_out || result == outcome::host_silent;
}

/// A slow model: knows every probe, and judges every effect after the fact.
class judge {
 public:
  judge(pool_driver& it, milliseconds hold_down) : it_(it), hold_down_(hold_down) {
    for (const auto& each : it.status().upstreams) told_[each.id] = each.state;
    it.on_effect = [this](const effect& each) {
      std::visit([this](const auto& is) { check(is); }, each);
    };
  }

  int resets = 0;
  int drains = 0;

  /// Each upstream that is wanted once, by tier.
  void check_candidates() {
    std::multiset<upstream_id> expected;
    std::map<upstream_id, upstream_status> by_id;
    for (const auto& each : it_.status().upstreams) {
      by_id[each.id] = each;
      if (!each.removed) expected.insert(each.id);
    }
    std::multiset<upstream_id> given;
    int tier = 0;
    for (const auto& each : it_.pool.candidates(it_.now)) {
      given.insert(each.id);
      EXPECT_GE(by_id[each.id].tier, tier);
      tier = by_id[each.id].tier;
    }
    EXPECT_EQ(given, expected);
  }

 private:
  void check(const probe_now&) {}
  void check(const would_close&) { ADD_FAILURE() << "nothing is only observed here"; }
  void check(const upstream_gone& is) { EXPECT_TRUE(gone_.insert(is.id).second); }

  void check(const upstream_changed& is) {
    const auto last = told_.try_emplace(is.id, state::unknown).first;
    EXPECT_EQ(last->second, is.from);
    last->second = is.to;
  }

  void check(const call_off& is) {
    EXPECT_TRUE(ordered_.erase(is.id)) << "something was ordered before";
  }

  void check(const reset_connections& is) {
    ++resets;
    ordered_.insert(is.id);
    EXPECT_FALSE(gone_.contains(is.id));
    EXPECT_TRUE(silent_after_an_answer_of_another(is.id));
    const auto last = reset_at_.find(is.id);
    if (last != reset_at_.end()) {
      EXPECT_GE(it_.now - last->second, hold_down_);
    }
    reset_at_[is.id] = it_.now;
  }

  void check(const drain_connections& is) {
    ++drains;
    ordered_.insert(is.id);
    EXPECT_FALSE(gone_.contains(is.id));
    EXPECT_TRUE(another_answers_now(is.id));
  }

  /// Another upstream answered, and this one was silent to a probe that began after that answer.
  bool silent_after_an_answer_of_another(upstream_id id) const {
    const auto& all = it_.reports;
    for (auto pass = all.rbegin(); pass != all.rend(); ++pass) {
      if (pass->first == id && is_pass(pass->second.result)) return false;
      if (pass->first == id || !is_pass(pass->second.result)) continue;
      const auto failed = std::find_if(all.rbegin(), pass, [&](const auto& each) {
        return each.first == id && is_silence(each.second.result) &&
               each.second.started >= pass->second.finished;
      });
      if (failed != pass) return true;
    }
    return false;
  }

  bool another_answers_now(upstream_id id) const {
    std::set<upstream_id> seen;
    for (auto each = it_.reports.rbegin(); each != it_.reports.rend(); ++each) {
      const bool may_be_discarded =
          each->second.result == outcome::timed_out && each->second.loop_lag > 250ms;
      if (each->first == id || may_be_discarded || !seen.insert(each->first).second) continue;
      if (is_pass(each->second.result)) return true;
    }
    return false;
  }

  pool_driver& it_;
  milliseconds hold_down_;
  std::map<upstream_id, state> told_;
  std::map<upstream_id, time_point> reset_at_;
  std::set<upstream_id> ordered_;
  std::set<upstream_id> gone_;
};

/// Lets the world do something at random.
class chaos {
 public:
  chaos(pool_driver& it, unsigned seed) : it_(it), random_(seed) {}

  void act() {
    const auto& name = present_[below(present_.size())];
    switch (below(12)) {
      case 0:
        return it_.answers(name, any_outcome(), below(2) == 0);
      case 1:
        return it_.answers(name, outcome::passed);
      case 2:
        return it_.all_answer(below(3) == 0 ? any_outcome() : outcome::passed, below(2) == 0);
      case 3:
        return it_.hear(name);
      case 4:
        return it_.send(name);
      case 5:
        return it_.pool.report_dial(it_.id(name), any_dial(), it_.now);
      case 6:
        return change_connections(name);
      case 7:
        if (below(6) == 0) change_set();
        return;
      case 8:
        if (below(4) == 0) it_.pool.report_host_silent(it_.id(name), "keep-alive lost", it_.now);
        return;
      case 9:
        it_.loop_lag = below(5) == 0 ? 400ms : 0ms;
        return;
      default:
        return it_.run(milliseconds(1 + below(4000)));
    }
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }

  outcome any_outcome() {
    constexpr outcome all[] = {outcome::timed_out,     outcome::timed_out,
                               outcome::host_silent,   outcome::lost,
                               outcome::not_ready,     outcome::refused,
                               outcome::shutting_down, outcome::local_trouble,
                               outcome::unauthorized,  outcome::wrong_certificate,
                               outcome::bad_validity,  outcome::not_tls};
    return all[below(std::size(all))];
  }

  health::dial_result any_dial() {
    constexpr health::dial_result all[] = {
        health::dial_result::connected,   health::dial_result::refused,
        health::dial_result::timed_out,   health::dial_result::lost,
        health::dial_result::host_silent, health::dial_result::local_trouble,
        health::dial_result::abandoned};
    return all[below(std::size(all))];
  }

  void change_connections(const std::string& name) {
    const auto has = static_cast<int>(it_.look(name).connections);
    if (has < 5)
      it_.open(name, 5);
    else
      it_.close(name, static_cast<int>(below(static_cast<std::size_t>(has))));
  }

  void change_set() {
    present_.clear();
    for (const auto& name : names)
      if (below(4) != 0) present_.push_back(name);
    if (present_.empty()) present_.push_back(names.front());
    it_.reconcile(present_);
  }

  pool_driver& it_;
  std::mt19937 random_;
  std::vector<std::string> present_ = names;
};

TEST(RandomSequences, KeepEveryPromise) {
  int resets = 0;
  int drains = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    pool_driver it(pool_driver::start::ready, {}, names);
    judge all(it, it.settings.health.hold_down);
    chaos world(it, seed);
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
      world.act();
      it.take();
      all.check_candidates();
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
    resets += all.resets;
    drains += all.drains;
  }
  EXPECT_GT(resets, 50) << "the sequences reach what they are about";
  EXPECT_GT(drains, 20);
}

}  // namespace
}  // namespace kubelane::proxy
