#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <tuple>
#include <utility>

namespace kubelane::net {

namespace asio = boost::asio;
using boost::system::error_code;

/// The one completion token: the result is a tuple that begins with the error code.
inline constexpr auto nothrow = asio::as_tuple(asio::use_awaitable);

/// Runs `operation` for at most `limit`: its result, or `asio::error::timed_out` in place of
/// `operation_aborted` when the limit cut it short. A result that is there in time counts, however
/// late this loop comes to look.
///
/// `operation` must stop when cancelled, and must not throw anything but that.
template <class... Values>
asio::awaitable<std::tuple<error_code, Values...>> with_timeout(
    std::chrono::steady_clock::duration limit,
    asio::awaitable<std::tuple<error_code, Values...>> operation) {
  struct race {
    asio::cancellation_signal stop;
    bool expired = false;
  };
  // Shared with the timer's handler, which can be queued already when the operation ends.
  const auto state = std::make_shared<race>();
  const auto executor = co_await asio::this_coro::executor;
  const auto outer = co_await asio::this_coro::cancellation_state;
  asio::steady_timer timer(executor, limit);
  timer.async_wait([state](error_code error) {
    if (error) return;
    state->expired = true;
    state->stop.emit(asio::cancellation_type::terminal);
  });
  auto pass_on = [state](asio::cancellation_type type) { state->stop.emit(type); };
  auto slot = outer.slot();
  if (slot.is_connected()) slot.assign(std::move(pass_on));
  auto token = asio::bind_cancellation_slot(state->stop.slot(), nothrow);
  auto running = asio::co_spawn(executor, std::move(operation), std::move(token));
  auto [failure, result] = co_await std::move(running);
  if (slot.is_connected()) slot.clear();
  if (failure) std::rethrow_exception(failure);
  if (state->expired && std::get<0>(result) == asio::error::operation_aborted)
    std::get<0>(result) = asio::error::timed_out;
  co_return std::move(result);
}

}  // namespace kubelane::net
