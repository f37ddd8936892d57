#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <list>

namespace kubelane::net {

namespace asio = boost::asio;

/// Owns running coroutines, so that none outlives what it uses: whoever has a group spawns into it,
/// and waits until it is empty before going away.
///
/// A task that is cancelled unwinds by the exception of its next `co_await`, and the group swallows
/// it. Any other exception is a bug and goes to `on_bug`. One thread.
class task_group {
 public:
  task_group(asio::any_io_executor executor, std::function<void(std::exception_ptr)> on_bug);
  /// Asserts that every task has ended.
  ~task_group();
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  /// Starts a task; it runs up to its first wait before this returns when called on the loop.
  void spawn(asio::awaitable<void> task);
  /// Cancels every task that runs now.
  void cancel();
  /// Tasks that have not ended.
  std::size_t size() const noexcept { return tasks_.size(); }
  /// Waits until every task has ended, those spawned meanwhile included. No limit of its own.
  asio::awaitable<void> wait_empty();

 private:
  using task_list = std::list<asio::cancellation_signal>;

  void ended(task_list::iterator task, std::exception_ptr failure);

  asio::any_io_executor executor_;
  std::function<void(std::exception_ptr)> on_bug_;
  task_list tasks_;
  asio::steady_timer emptied_;  // never expires: cancelled to wake those who wait
};

}  // namespace kubelane::net
