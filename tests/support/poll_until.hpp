#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <thread>

namespace kubelane::test {

using namespace std::chrono_literals;

/// Waits until `claim()` holds; false if it does not within `limit`.
template <class Claim>
bool poll_until(const Claim& claim, std::chrono::steady_clock::duration limit = 5s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!claim()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// The same, while a loop runs.
template <class Claim>
bool poll_until(boost::asio::io_context& io, const Claim& claim,
                std::chrono::steady_clock::duration limit = 5s) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!claim()) {
    if (std::chrono::steady_clock::now() > end) return false;
    if (io.stopped()) io.restart();
    io.run_for(2ms);
  }
  return true;
}

}  // namespace kubelane::test
