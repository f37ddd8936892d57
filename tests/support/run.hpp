#pragma once

#include "net/stream.hpp"
#include "net/task_group.hpp"
#include "net/timeout.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <stdexcept>

namespace kubelane::test {

using namespace std::chrono_literals;

/// Runs one coroutine to its end on `io`, for at most `limit`; rethrows what it throws.
inline void run(boost::asio::io_context& io, boost::asio::awaitable<void> task,
                std::chrono::steady_clock::duration limit = 20s) {
  std::exception_ptr failure;
  net::task_group tasks(io.get_executor(), [&](std::exception_ptr what) { failure = what; });
  tasks.spawn(std::move(task));
  const auto end = std::chrono::steady_clock::now() + limit;
  while (tasks.size() > 0 && std::chrono::steady_clock::now() < end) {
    if (io.stopped()) io.restart();
    io.run_one_for(10ms);
  }
  const bool late = tasks.size() > 0;
  tasks.cancel();
  while (tasks.size() > 0) {
    if (io.stopped()) io.restart();
    io.run_one_for(10ms);
  }
  if (late) throw std::runtime_error("the test's coroutine did not end in time");
  if (failure) std::rethrow_exception(failure);
}

/// A stream connected to `target`, which is there. Blocks.
inline net::stream connect(boost::asio::io_context& io, const net::endpoint& target) {
  boost::asio::ip::tcp::socket socket(io);
  socket.connect({target.address(), target.port()});
  return net::stream(std::move(socket));
}

}  // namespace kubelane::test
