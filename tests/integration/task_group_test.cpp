#include "net/task_group.hpp"

#include "net/timeout.hpp"
#include "tests/support/poll_until.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

asio::awaitable<void> sleep_for(std::chrono::milliseconds time, int& done) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
  ++done;
}

asio::awaitable<void> fail() {
  throw std::runtime_error("broken");
  co_return;
}

asio::awaitable<void> wait_for(net::task_group& group, bool& empty) {
  auto waiting = group.wait_empty();
  co_await std::move(waiting);
  empty = true;
}

class TaskGroup : public testing::Test {
 protected:
  void run(std::chrono::milliseconds time = 50ms) {
    io.restart();
    io.run_for(time);
  }

  asio::io_context io;
  int bugs = 0;
  int done = 0;
  net::task_group tasks{io.get_executor(), [this](std::exception_ptr) { ++bugs; }};
};

TEST_F(TaskGroup, RunsTasksToTheirEnd) {
  tasks.spawn(sleep_for(1ms, done));
  tasks.spawn(sleep_for(2ms, done));
  EXPECT_EQ(tasks.size(), 2u);
  run();
  EXPECT_EQ(done, 2);
  EXPECT_EQ(tasks.size(), 0u);
  EXPECT_EQ(bugs, 0);
}

TEST_F(TaskGroup, CancellingEndsEveryTaskAndIsNoBug) {
  tasks.spawn(sleep_for(1h, done));
  tasks.spawn(sleep_for(1h, done));
  run(5ms);
  tasks.cancel();
  run();
  EXPECT_EQ(tasks.size(), 0u);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(bugs, 0);
}

TEST_F(TaskGroup, CancellingBeforeTheFirstStepIsAllowed) {
  tasks.spawn(sleep_for(1h, done));
  tasks.cancel();
  run();
  EXPECT_EQ(tasks.size(), 0u);
}

TEST_F(TaskGroup, CancellingATaskThatEndsThisMomentIsAllowed) {
  tasks.spawn(sleep_for(1ms, done));
  run(0ms);
  std::this_thread::sleep_for(5ms);
  asio::post(io, [this] { tasks.cancel(); });
  tasks.cancel();
  run();
  EXPECT_EQ(tasks.size(), 0u);
}

TEST_F(TaskGroup, ReportsAnyOtherException) {
  tasks.spawn(fail());
  run();
  EXPECT_EQ(bugs, 1);
  EXPECT_EQ(tasks.size(), 0u);
}

TEST_F(TaskGroup, WaitsUntilItIsEmpty) {
  bool empty = false;
  net::task_group waiters(io.get_executor(), [](std::exception_ptr) { ADD_FAILURE(); });
  tasks.spawn(sleep_for(20ms, done));
  waiters.spawn(wait_for(tasks, empty));
  run(5ms);
  EXPECT_FALSE(empty);
  run();
  EXPECT_TRUE(empty);
}

TEST_F(TaskGroup, AnEmptyOneNeedsNoWaiting) {
  bool empty = false;
  net::task_group waiters(io.get_executor(), [](std::exception_ptr) { ADD_FAILURE(); });
  waiters.spawn(wait_for(tasks, empty));
  run(5ms);
  EXPECT_TRUE(empty);
}

asio::awaitable<std::tuple<net::error_code, int>> answer_after(std::chrono::milliseconds time) {
  using result = std::tuple<net::error_code, int>;
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  auto [error] = co_await timer.async_wait(net::nothrow);
  co_return result(error, error ? 0 : 42);
}

struct timed {
  net::error_code error;
  int value = 0;
  bool reached_next = false;
};

asio::awaitable<void> run_with_timeout(std::chrono::milliseconds limit,
                                       std::chrono::milliseconds needed, timed& result) {
  auto operation = answer_after(needed);
  auto [error, value] = co_await net::with_timeout(limit, std::move(operation));
  result.error = error;
  result.value = value;
  asio::steady_timer timer(co_await asio::this_coro::executor, 0ms);
  co_await timer.async_wait(asio::use_awaitable);
  result.reached_next = true;
}

class WithTimeout : public TaskGroup {
 protected:
  timed result;
};

TEST_F(WithTimeout, GivesTheResultThatComesInTime) {
  tasks.spawn(run_with_timeout(1h, 1ms, result));
  run();
  EXPECT_FALSE(result.error);
  EXPECT_EQ(result.value, 42);
  EXPECT_TRUE(result.reached_next);
}

TEST_F(WithTimeout, NamesItsOwnCancellationATimeOut) {
  tasks.spawn(run_with_timeout(5ms, 1h, result));
  run();
  EXPECT_EQ(result.error, asio::error::timed_out);
  EXPECT_TRUE(result.reached_next);
}

TEST_F(WithTimeout, PassesACancellationOn) {
  tasks.spawn(run_with_timeout(1h, 1h, result));
  run(5ms);
  tasks.cancel();
  run();
  EXPECT_EQ(tasks.size(), 0u);
  EXPECT_EQ(result.error, asio::error::operation_aborted);
  EXPECT_FALSE(result.reached_next);
}

TEST_F(WithTimeout, AResultThatIsThereCountsHoweverLateTheLoop) {
  tasks.spawn(run_with_timeout(20ms, 10ms, result));
  run(0ms);
  std::this_thread::sleep_for(40ms);
  run();
  EXPECT_FALSE(result.error) << result.error.message();
  EXPECT_EQ(result.value, 42);
}

}  // namespace
}  // namespace kubelane
