// What the pure core costs where it is called often: once per client connection, once per probe.

#include "health/readyz.hpp"
#include "proxy/client_hello.hpp"
#include "proxy/upstream_pool.hpp"

#include <benchmark/benchmark.h>

#include <random>

namespace kubelane {
namespace {

using namespace std::chrono_literals;

struct crowd {
  explicit crowd(int upstreams) {
    std::vector<proxy::wanted_upstream> wanted;
    for (int i = 0; i < upstreams; ++i)
      wanted.push_back({"cp" + std::to_string(i),
                        net::parse_endpoint("10.0.0." + std::to_string(i + 1), 6443), "",
                        health::membership::configured});
    pool.reconcile(wanted, health::time_point(1h));
  }

  std::mt19937_64 random{1};
  proxy::upstream_pool pool{config::config{},
                            [this] { return std::uniform_real_distribution<double>()(random); }};
};

void candidates(benchmark::State& state) {
  crowd all(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(all.pool.candidates(health::time_point(1h)));
}
BENCHMARK(candidates)->Arg(3)->Arg(9);

void report_of_a_pass(benchmark::State& state) {
  crowd all(3);
  const auto id = all.pool.status(health::time_point(1h)).upstreams.front().id;
  health::probe_report report;
  report.result = health::outcome::passed;
  auto now = health::time_point(1h);
  for (auto _ : state) {
    now += 1s;
    report.started = report.finished = now;
    benchmark::DoNotOptimize(all.pool.report_probe(id, report, now));
  }
}
BENCHMARK(report_of_a_pass);

void failed_checks(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < 40; ++i) body += "[+]poststarthook/number-" + std::to_string(i) + " ok\n";
  body += "[-]etcd failed: reason withheld\n";
  for (auto _ : state) benchmark::DoNotOptimize(health::parse_readyz(body));
}
BENCHMARK(failed_checks);

}  // namespace
}  // namespace kubelane

BENCHMARK_MAIN();
