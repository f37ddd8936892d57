#include "pool_driver.hpp"

#include <algorithm>
#include <set>

namespace kubelane::test {

using namespace std::chrono_literals;

namespace {

proxy::wanted_upstream wanted(const std::string& name) {
  // cp7 is 10.0.0.7.
  return {.name = name,
          .address = net::parse_endpoint("10.0.0." + name.substr(2), 6443),
          .zone = "",
          .member = health::membership::configured};
}

}  // namespace

pool_driver::pool_driver(start from, config::config with, const std::vector<std::string>& names)
    : settings(std::move(with)),
      pool(settings, [this] { return std::uniform_real_distribution<double>(0, 1)(random_); }) {
  reconcile(names);
  if (from == start::unprobed) return;
  run(3s);
  for (const auto& name : names) open(name, 5);
  forget();
}

void pool_driver::reconcile(const std::vector<std::string>& names) {
  std::vector<proxy::wanted_upstream> all;
  for (const auto& name : names) all.push_back(wanted(name));
  pool.reconcile(all, now);
  std::erase_if(probers_, [&](const auto& each) {
    return std::find(names.begin(), names.end(), each.first) == names.end();
  });
  for (const auto& each : pool.status(now).upstreams) {
    ids[each.name] = each.id;
    if (!each.removed) probers_.try_emplace(each.name, prober{.next = now});
  }
  take();
}

void pool_driver::answers(const std::string& name, outcome result, bool etcd_failed) {
  auto& it = probers_.at(name);
  it.result = result;
  it.etcd_failed = etcd_failed;
}

void pool_driver::all_answer(outcome result, bool etcd_failed) {
  for (auto& each : probers_) answers(each.first, result, etcd_failed);
}

void pool_driver::run(milliseconds lasts) {
  for (const auto end = now + lasts; now < end; now += 1ms) {
    for (auto& [name, it] : probers_) step(name, it);
    if (now < next_tick_) continue;
    pool.tick(now);
    take();
    next_tick_ = now + 100ms;
  }
}

std::optional<milliseconds> pool_driver::time_to_leave(milliseconds limit) {
  for (const auto from = now; now < from + limit;) {
    run(10ms);
    if (!closings().empty()) return std::chrono::floor<milliseconds>(now - from);
  }
  return std::nullopt;
}

void pool_driver::step(const std::string& name, prober& it) {
  const auto took = it.result == outcome::timed_out ? 500ms : 2ms;
  if (it.started && now - *it.started >= took) {
    health::probe_report report{
        .result = it.result, .started = *it.started, .finished = now, .loop_lag = loop_lag};
    report.etcd_failed = it.etcd_failed;
    it.started.reset();
    reports.emplace_back(id(name), report);
    it.next = now + pool.report_probe(id(name), report, now);
    take();
  }
  if (!it.started && now >= it.next) it.started = now;
}

void pool_driver::take() {
  for (const auto& each : pool.take_effects()) {
    effects.push_back(each);
    on_effect(each);
    const auto* ask = std::get_if<proxy::probe_now>(&each);
    const auto it = ask ? probers_.find(name_of(ask->id)) : probers_.end();
    if (it == probers_.end()) continue;
    it->second.next = now;
  }
}

std::string pool_driver::name_of(proxy::upstream_id which) const {
  for (const auto& [name, its] : ids)
    if (its == which) return name;
  return "?";
}

void pool_driver::open(const std::string& name, int connections) {
  for (int i = 0; i < connections; ++i) pool.opened(id(name));
}

void pool_driver::close(const std::string& name, int connections) {
  const auto which = id(name);
  for (int i = 0; i < connections; ++i) pool.closed(which, now);
  take();
}

void pool_driver::hear(const std::string& name) {
  auto& activity = pool.activity_of(id(name));
  activity.last_heard = now;
  activity.unanswered_since = {};
}

void pool_driver::send(const std::string& name) {
  auto& activity = pool.activity_of(id(name));
  activity.bytes_up += 100;
  if (activity.unanswered_since == time_point{}) activity.unanswered_since = now;
}

proxy::upstream_status pool_driver::look(const std::string& name) const {
  for (const auto& each : status().upstreams)
    if (each.id == id(name)) return each;
  return {};
}

std::vector<std::string> pool_driver::order() {
  std::vector<std::string> names;
  for (const auto& each : pool.candidates(now)) names.push_back(name_of(each.id));
  return names;
}

std::string pool_driver::closings() const {
  std::multiset<std::string> each_one;
  for (const auto& each : seen<proxy::reset_connections>())
    each_one.insert(each.cause + " " + name_of(each.id));
  for (const auto& each : seen<proxy::drain_connections>())
    each_one.insert(each.cause + " " + name_of(each.id));
  std::string list;
  for (const auto& each : each_one) list += (list.empty() ? "" : ", ") + each;
  return list;
}

}  // namespace kubelane::test
