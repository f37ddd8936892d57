// What cannot creep: how often the kernel is called, and how much is done in between. Both are
// counted, not timed, so they are the same on a busy machine. A figure that is more than a tenth
// above what is written here fails; one that has come down should be written down.

#include "kept_world.hpp"
#include "line_client.hpp"
#include "serving.hpp"
#include "traced.hpp"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

constexpr double margin = 1.1;
constexpr auto patience = 60s;

// The figures: a round trip on one connection, kept or not, kernel entries and user space in
// between; and a connection with one request and its answer. Measured with g++ 12 as `./dev test`
// builds.
constexpr double calls_of_a_request = 6;
constexpr double instructions_of_a_request = 1230;
constexpr double calls_of_a_connection = 19;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool is_instrumented = true;
#else
constexpr bool is_instrumented = false;
#endif
#if defined(NDEBUG) && defined(__x86_64__)
constexpr bool instructions_count = !is_instrumented;
#else
constexpr bool instructions_count = false;
#endif

using calls = std::map<long, double>;

/// Puts this thread and a process on the same core: then a step is a switch from one to the other,
/// and none waits for a core to wake up.
class on_one_core {
 public:
  explicit on_one_core(pid_t process) : process_(process) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
    sched_setaffinity(0, sizeof here, &here);
    sched_setaffinity(process_, sizeof here, &here);
  }
  ~on_one_core() {
    sched_setaffinity(0, sizeof before_, &before_);
    sched_setaffinity(process_, sizeof before_, &before_);
  }
  on_one_core(const on_one_core&) = delete;
  on_one_core& operator=(const on_one_core&) = delete;

 private:
  pid_t process_;
  cpu_set_t before_{};
};

/// Lets a process take step after step while `work` is done on another thread. `note` looks at it
/// and says how to go on.
template <typename Note>
void follow(pid_t process, const std::function<void()>& work, const Note& note) {
  std::atomic<bool> attached = false;
  std::atomic<bool> done = false;
  std::thread worker([&] {
    while (!attached) std::this_thread::yield();
    work();
    done = true;
  });
  const on_one_core together(process);
  traced it(process);
  attached = true;
  auto how = traced::step::to_call;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!done && std::chrono::steady_clock::now() < end)
    if (it.go_on(how)) how = note(it);
  EXPECT_TRUE(done) << "not within " << patience.count() << " s";
  it.let_go();
  worker.join();
}

/// The loop's tick makes these, 10 or 20 times a second: by time, not by work.
constexpr std::array by_time = {SYS_epoll_wait, SYS_timerfd_settime, SYS_newfstatat};

bool is_by_time(long call) {
  return std::find(by_time.begin(), by_time.end(), call) != by_time.end();
}

/// Counts the system calls of the main thread by number: of turns that do anything but tick, or
/// look whether more has come a while after a short read.
class call_meter {
 public:
  traced::step operator()(const traced& at) {
    const long call = at.entered();
    if (call >= 0) {
      last_ = call;
      if (!is_by_time(call)) ++turn_[call];
      const bool waits = call == SYS_epoll_pwait;
      is_work_ = is_work_ || !(waits || is_by_time(call) || call == SYS_splice);
      if (waits) end_turn();
    } else if (last_ == SYS_splice && at.returned() >= 0) {
      is_work_ = true;
    }
    return traced::step::to_call;
  }

  calls seen;

 private:
  void end_turn() {
    if (is_work_)
      for (const auto& [number, times] : turn_) seen[number] += times;
    turn_.clear();
    is_work_ = false;
  }

  calls turn_;
  long last_ = -1;
  bool is_work_ = false;
};

calls calls_per(int count, pid_t process, const std::function<void()>& work) {
  call_meter meter;
  follow(process, work, std::ref(meter));
  for (auto& [call, times] : meter.seen) times /= count;
  return meter.seen;
}

/// Counts the instructions in user space of turns that move bytes and do nothing else, from one
/// wait for events to the next. By single steps: few virtual machines have a counter, and this
/// needs none.
class turn_meter {
 public:
  traced::step operator()(const traced& at) { return stepping_ ? step(at) : run(at); }
  std::vector<int> turns;

 private:
  // A turn in which more happens is passed over; steps are slow.
  static constexpr int most_before_bytes = 400;
  static constexpr int most = 3'000;

  traced::step run(const traced& at) {
    const long call = at.entered();
    stepping_ = call < 0 && last_call_ == SYS_epoll_pwait;
    last_call_ = call;
    steps_ = 0;
    moves_bytes_ = false;
    return stepping_ ? traced::step::instruction : traced::step::to_call;
  }
  traced::step step(const traced& at) {
    ++steps_;
    const long call = at.about_to_call();
    moves_bytes_ = moves_bytes_ || call == SYS_sendto;
    if (call == SYS_epoll_pwait && moves_bytes_) turns.push_back(steps_);
    stepping_ = call != SYS_epoll_pwait && !is_by_time(call) &&
                steps_ < (moves_bytes_ ? most : most_before_bytes);
    return stepping_ ? traced::step::instruction : traced::step::to_call;
  }

  bool stepping_ = false;
  bool moves_bytes_ = false;
  long last_call_ = -1;
  int steps_ = 0;
};

double total(const calls& seen) {
  double sum = 0;
  for (const auto& [call, times] : seen) sum += times;
  return sum;
}

double of(const calls& seen, long call) {
  const auto found = seen.find(call);
  return found == seen.end() ? 0 : found->second;
}

std::string words(const calls& seen) {
  std::ostringstream text;
  text << total(seen) << " in all;";
  for (const auto& [call, times] : seen) text << " number " << call << ": " << times;
  return text.str();
}

void ask_often(line_client& client, int times) {
  for (int i = 0; i < times; ++i) EXPECT_TRUE(client.ask("name"));
}

void connect_often(int port, int times) {
  for (int i = 0; i < times; ++i) EXPECT_TRUE(line_client(port).ask("name"));
}

class Cost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_instrumented) GTEST_SKIP() << "sanitizers make calls of their own";
  }
  static constexpr char rare_probes[] = "interval: 10m";
};

TEST_F(Cost, OfARequestAndItsAnswerIsSixSystemCalls) {
  serving it("", rare_probes);
  ASSERT_TRUE(it.ready) << it.run.error();
  line_client client(it.port);
  ask_often(client, 3);
  constexpr int times = 100;
  const auto seen = calls_per(times, it.run.pid(), [&] { ask_often(client, times); });
  EXPECT_NEAR(of(seen, SYS_recvfrom), 2, 0.2) << words(seen);
  EXPECT_NEAR(of(seen, SYS_sendto), 2, 0.2) << words(seen);
  EXPECT_LE(total(seen), calls_of_a_request * margin) << words(seen);
}

TEST_F(Cost, OfARequestOnAKeptConnectionIsSixSystemCalls) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  line_client client(it.port);
  ask_often(client, 3);
  ASSERT_TRUE(it.stores(1)) << it.log();
  constexpr int times = 100;
  const auto seen = calls_per(times, it.manager.run().pid(), [&] { ask_often(client, times); });
  EXPECT_NEAR(of(seen, SYS_splice), 4, 0.3) << words(seen) << ": never in the process' memory";
  EXPECT_LE(total(seen), calls_of_a_request * margin) << words(seen);
}

TEST_F(Cost, OfAShortConnectionIsNineteenSystemCalls) {
  serving it("", rare_probes);
  ASSERT_TRUE(it.ready) << it.run.error();
  connect_often(it.port, 3);
  constexpr int times = 100;
  const auto seen = calls_per(times, it.run.pid(), [&] { connect_often(it.port, times); });
  EXPECT_LE(total(seen), calls_of_a_connection * margin) << words(seen);
}

TEST_F(Cost, OfAShortConnectionIsTheSameWithADescriptorStore) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.log();
  connect_often(it.port, 3);
  const auto said = it.manager.store.datagrams();
  constexpr int times = 100;
  const auto seen =
      calls_per(times, it.manager.run().pid(), [&] { connect_often(it.port, times); });
  EXPECT_LE(total(seen), calls_of_a_connection * margin) << words(seen);
  EXPECT_LE(it.manager.store.datagrams() - said, 1U) << "its status, now and then";
}

TEST_F(Cost, OfARequestAndItsAnswerIsTwelveHundredInstructions) {
  if (!instructions_count) GTEST_SKIP() << "counted in the release build for x86-64 alone";
  serving it("", rare_probes);
  ASSERT_TRUE(it.ready) << it.run.error();
  line_client client(it.port);
  ask_often(client, 3);
  turn_meter seen;
  follow(
      it.run.pid(), [&] { ask_often(client, 30); }, std::ref(seen));
  if (seen.turns.empty()) GTEST_SKIP() << "too busy: no turn was without other work";
  const int least = *std::min_element(seen.turns.begin(), seen.turns.end());
  EXPECT_LE(2 * least, instructions_of_a_request * margin) << "two turns a request";
}

TEST_F(Cost, OfLoggingIsNotOnTheDescriptorsOfTheDataPath) {
  serving it("", rare_probes);
  ASSERT_TRUE(it.ready) << it.run.error();
  const std::filesystem::path tasks = "/proc/" + std::to_string(it.run.pid()) + "/task";
  int others = 0;
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    if (task.path().filename() == std::to_string(it.run.pid())) continue;
    ++others;
    const auto held = std::filesystem::directory_iterator(task.path() / "fd");
    EXPECT_LE(std::distance(begin(held), end(held)), 3);
  }
  EXPECT_EQ(others, 1);
}

}  // namespace
}  // namespace kubelane::test
