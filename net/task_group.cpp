#include "net/task_group.hpp"

#include "net/timeout.hpp"

#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>

#include <cassert>

namespace kubelane::net {
namespace {

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

task_group::task_group(asio::any_io_executor executor,
                       std::function<void(std::exception_ptr)> on_bug)
    : executor_(executor),
      on_bug_(std::move(on_bug)),
      emptied_(executor, asio::steady_timer::time_point::max()) {}

task_group::~task_group() {
  assert(tasks_.empty());
}

void task_group::spawn(asio::awaitable<void> task) {
  const auto place = tasks_.emplace(tasks_.end());
  auto done = [this, place](std::exception_ptr failure) { ended(place, failure); };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(place->slot(), std::move(done)));
}

void task_group::cancel() {
  // Emitting can run a task on: what it spawns is behind those counted, what ends stays listed.
  auto task = tasks_.begin();
  for (auto left = tasks_.size(); left > 0; --left, ++task)
    task->emit(asio::cancellation_type::terminal);
}

void task_group::ended(task_list::iterator task, std::exception_ptr failure) {
  if (failure && !is_cancellation(failure)) on_bug_(failure);
  // Not now: a cancellation posted earlier still refers to the signal.
  asio::post(executor_, [this, task] {
    tasks_.erase(task);
    if (tasks_.empty()) emptied_.cancel();
  });
}

asio::awaitable<void> task_group::wait_empty() {
  while (!tasks_.empty()) {
    auto [error] = co_await emptied_.async_wait(nothrow);
    static_cast<void>(error);  // always aborted: by `ended`, or by our own cancellation
  }
}

}  // namespace kubelane::net
