// A thousand workers that do the same at the same moment.

#include "proxy/upstream_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <queue>
#include <random>

namespace kubelane::sim {
namespace {

using namespace std::chrono_literals;
using health::milliseconds;
using health::outcome;
using health::time_point;

/// Workers with a pool each, whose probes take two milliseconds. Event by event.
class fleet {
 public:
  explicit fleet(int workers) : start_(1h), now_(start_) {
    config::config settings;
    settings.cluster.nodes = workers;
    interval = config::probe_interval(settings);
    for (int i = 0; i < workers; ++i) {
      pools_.push_back(std::make_unique<proxy::upstream_pool>(
          settings, [this] { return std::uniform_real_distribution<double>(0, 1)(random_); }));
      pools_.back()->reconcile(wanted(), now_);
      // All were started within the same ten milliseconds.
      for (const auto& each : pools_.back()->status(now_).upstreams)
        probes_.push({start_ + milliseconds(random_() % 10), i, each.id});
    }
  }

  void run_until(milliseconds end) {
    while (probes_.top().at < start_ + end) {
      const auto next = probes_.top();
      probes_.pop();
      now_ = next.at;
      probe(next);
    }
  }

  /// Probes of the first server from `begin` to `end`, counted per `bin`.
  std::vector<int> histogram(milliseconds begin, milliseconds end, milliseconds bin) const {
    std::vector<int> counts(static_cast<std::size_t>((end - begin) / bin), 0);
    for (const auto& at : seen_) {
      const auto index = (at - start_ - begin) / bin;
      if (at >= start_ + begin && index < static_cast<long>(counts.size()))
        ++counts[static_cast<std::size_t>(index)];
    }
    return counts;
  }

  bool last_is_down = false;
  int asked = 0;  ///< probes of the first server out of turn
  milliseconds interval{0};

 private:
  struct due {
    time_point at;
    int worker;
    proxy::upstream_id id;
    bool operator<(const due& other) const { return at > other.at; }
  };

  static std::vector<proxy::wanted_upstream> wanted() {
    std::vector<proxy::wanted_upstream> all;
    for (const auto* name : {"10.0.0.1", "10.0.0.2", "10.0.0.3"})
      all.push_back(
          {.name = name, .address = net::parse_endpoint(name, 6443), .zone = "", .member = {}});
    return all;
  }

  void probe(const due& what) {
    auto& pool = *pools_[static_cast<std::size_t>(what.worker)];
    const bool fails = last_is_down && what.id == proxy::upstream_id{3};
    if (what.id == proxy::upstream_id{1}) seen_.push_back(now_);
    const health::probe_report report{.result = fails ? outcome::refused : outcome::passed,
                                      .started = now_,
                                      .finished = now_ + 2ms};
    const auto delay = pool.report_probe(what.id, report, now_ + 2ms);
    probes_.push({now_ + 2ms + delay, what.worker, what.id});
    for (const auto& each : pool.take_effects()) {
      const auto* ask = std::get_if<proxy::probe_now>(&each);
      if (ask) ask_now(pool, ask->id);
    }
  }

  // As the checker would; its regular probes stay where they are.
  void ask_now(proxy::upstream_pool& pool, proxy::upstream_id id) {
    if (id == proxy::upstream_id{1}) ++asked;
    const health::probe_report report{
        .result = outcome::passed, .started = now_ + 2ms, .finished = now_ + 4ms};
    pool.report_probe(id, report, now_ + 4ms);
  }

  std::mt19937 random_{1};
  time_point start_;
  time_point now_;
  std::vector<std::unique_ptr<proxy::upstream_pool>> pools_;
  std::priority_queue<due> probes_;
  std::vector<time_point> seen_;
};

void expect_even(const std::vector<int>& counts, double tolerance, const char* when) {
  double sum = 0;
  for (const int each : counts) sum += each;
  const auto mean = sum / static_cast<double>(counts.size());
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  std::cout << when << ": " << mean << " probes each, " << *least << " to " << *most << "\n";
  EXPECT_LE(*most, mean * (1 + tolerance)) << when;
  EXPECT_GE(*least, mean * (1 - tolerance)) << when;
}

TEST(Fleet, OfAThousandStartedTogetherProbesEvenlyFromTheSecondProbeOn) {
  fleet all(1000);
  all.run_until(10min);
  EXPECT_EQ(all.histogram(0ms, 10ms, 10ms).front(), 1000) << "readiness does not wait";
  // The earliest come a third time after four fifths of the interval.
  const auto tenth = all.interval / 10;
  expect_even(all.histogram(20ms, 20ms + 8 * tenth, tenth), 0.3, "the first interval, per tenth");
  expect_even(all.histogram(1min, 2min, 1s), 0.25, "the second minute, per second");
  expect_even(all.histogram(9min, 10min, 1s), 0.25, "the tenth minute, per second");
}

TEST(Fleet, ThatLosesAServerAtOnceProbesTheOthersEvenlyAfterwards) {
  fleet all(1000);
  all.run_until(1min);
  all.last_is_down = true;
  all.run_until(5min);
  EXPECT_EQ(all.asked, 1000) << "each asks the others once";
  expect_even(all.histogram(65s, 75s, 1s), 0.25, "ten seconds after the loss, per second");
  expect_even(all.histogram(4min, 5min, 1s), 0.25, "minutes after the loss, per second");
}

TEST(Fleet, AsksAtARateThatShrinksWithItsSize) {
  const auto per_second = [](int workers) {
    fleet all(workers);
    all.run_until(2min);
    const auto counts = all.histogram(1min, 2min, 1min);
    return counts.front() / 60.0 / workers;
  };
  EXPECT_NEAR(per_second(100), 1 / 0.9, 0.05);
  EXPECT_NEAR(per_second(1500), 1 / 4.5, 0.02);
}

}  // namespace
}  // namespace kubelane::sim
