#include "proxy/pump.hpp"

#include "tests/support/peer.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace kubelane {
namespace {

using namespace std::chrono_literals;
using proxy::pump_end;
using proxy::pump_status;
using test::peer;
using test::random_bytes;

/// Two ends of one connection.
std::pair<peer, peer> connected() {
  test::test_listener listener;
  peer near = test::connect_to(listener.address());
  for (const auto end = std::chrono::steady_clock::now() + 5s;;) {
    if (auto far = listener.accept()) return {std::move(near), std::move(*far)};
    if (std::chrono::steady_clock::now() > end) return {};
  }
}

/// Waits until so many bytes can be read.
bool has_bytes(int fd, std::size_t wanted) {
  for (const auto end = std::chrono::steady_clock::now() + 5s;;) {
    int there = 0;
    ioctl(fd, FIONREAD, &there);
    if (static_cast<std::size_t>(there) >= wanted) return true;
    if (std::chrono::steady_clock::now() > end) return false;
  }
}

enum class way { copies, copies_beside_short_pipes, splices };

/// from => source | pump | sink => to. Which calls it makes is the parameter.
struct Pump : testing::TestWithParam<way> {
  Pump() {
    std::tie(from, from_far) = connected();
    std::tie(to_far, to) = connected();
    source.fd = from_far.fd();
    sink.fd = to_far.fd();
    if (GetParam() == way::copies_beside_short_pipes)
      give_short_pipe();
    else
      pipes.fill(1);
    if (GetParam() == way::splices) it.own_pipe();
  }

  /// As the kernel makes them for a user who has many.
  void give_short_pipe() {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    const int size = fcntl(ends[1], F_SETPIPE_SZ, 4'096);
    pipes.give({ends[0], ends[1], static_cast<std::uint32_t>(size)});
  }

  pump_status run(std::size_t budget = 1 << 20) {
    sum = {};
    return it.run(source, sink, budget, ++turn, sum);
  }
  /// As if an event had come at both ends.
  pump_status run_anew() {
    source.readable = sink.writable = true;
    return run();
  }

  void run_until_received(std::size_t size) {
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (to.received.size() < size && std::chrono::steady_clock::now() < end) {
      to.pull();
      run_anew();
    }
  }

  peer from, from_far, to_far, to;
  pump_end source, sink;
  proxy::pipe_pool pipes;
  proxy::pump it{pipes};
  proxy::pump::moved sum;
  std::uint32_t turn = 100;
};

TEST_P(Pump, AMessageIsMovedAtOnceAndNothingIsLeft) {
  const auto message = random_bytes(1'000, 1);
  from.push(message);
  ASSERT_TRUE(has_bytes(source.fd, message.size()));
  EXPECT_EQ(run_anew(), pump_status::idle);
  EXPECT_EQ(sum.read, message.size());
  EXPECT_EQ(sum.written, message.size());
  EXPECT_EQ(it.holds(), 0U);
  EXPECT_FALSE(source.readable);
  ASSERT_TRUE(has_bytes(to.fd(), message.size()));
  to.pull();
  EXPECT_EQ(to.received, message);
}

TEST_P(Pump, WhatTheSinkDoesNotTakeWaitsInThePipe) {
  to_far.set_buffers(4'096);
  to.set_buffers(4'096);
  std::string all;
  auto status = pump_status::idle;
  for (unsigned i = 0; status == pump_status::idle && i < 10'000; ++i) {
    const auto message = random_bytes(7'000, i);
    ASSERT_EQ(from.push(message), message.size());
    ASSERT_TRUE(has_bytes(source.fd, message.size()));
    all += message;
    status = run_anew();
  }
  EXPECT_EQ(status, pump_status::blocked);
  EXPECT_GT(it.holds(), 0U);
  EXPECT_LE(it.holds(), 7'000U);
  EXPECT_FALSE(sink.writable);
  run_until_received(all.size());
  EXPECT_EQ(to.received, all);
}

TEST_P(Pump, ASinkThatIsFullTakesNothingAndNothingIsLost) {
  to_far.set_buffers(4'096);
  to.set_buffers(4'096);
  std::string all;
  for (unsigned i = 0;; ++i) {
    const auto filling = random_bytes(10'000, i);
    const auto sent = to_far.push(filling);
    all += filling.substr(0, sent);
    if (sent == 0) break;
  }
  const auto message = random_bytes(7'000, 99);
  from.push(message);
  all += message;
  ASSERT_TRUE(has_bytes(source.fd, message.size()));
  EXPECT_EQ(run_anew(), pump_status::blocked);
  EXPECT_EQ(sum.written, 0U);
  EXPECT_EQ(it.holds(), sum.read);
  run_until_received(all.size());
  EXPECT_EQ(to.received, all);
}

TEST_P(Pump, MessagesAndBulkArriveUnchanged) {
  std::mt19937 random(7);
  std::string all;
  for (unsigned i = 0; i < 60; ++i) {
    const std::size_t longest = i % 3 == 0 ? 500'000 : 12'000;
    all += random_bytes(1 + random() % longest, i);
  }
  std::size_t sent = 0;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (to.received.size() < all.size() && std::chrono::steady_clock::now() < end) {
    const auto piece = std::string_view(all).substr(sent, 1 + random() % 100'000);
    sent += from.push(piece);
    run_anew();
    to.pull(random() % 2 == 0 ? 900 : 1 << 20);
  }
  EXPECT_EQ(to.received, all);
  EXPECT_TRUE(sink.queue_is_short) << "bulk went through it";
}

TEST_P(Pump, ManySegmentsAreReadToTheLastOrAreSaidToBeUnproven) {
  std::string all;
  for (unsigned i = 0; i < 300; ++i) {
    const auto piece = random_bytes(7, i);
    ASSERT_EQ(from.push(piece), piece.size());
    all += piece;
  }
  ASSERT_TRUE(has_bytes(source.fd, all.size()));
  run_anew();
  if (GetParam() != way::splices) {
    EXPECT_EQ(sum.written, all.size());
    EXPECT_FALSE(source.unproven);
  } else if (sum.written < all.size()) {
    EXPECT_TRUE(source.unproven);
  }
}

TEST_P(Pump, ALimitIsKept) {
  from.push("0123456789");
  ASSERT_TRUE(has_bytes(source.fd, 10));
  it.limit(4);
  EXPECT_EQ(run_anew(), pump_status::ended);
  EXPECT_EQ(sum.written, 4U);
  EXPECT_TRUE(has_bytes(source.fd, 6)) << "the rest stays";
}

TEST_P(Pump, TheEndComesBehindTheLastByte) {
  const auto last = random_bytes(20'000, 3);
  from.push(last);
  from.end();
  ASSERT_TRUE(has_bytes(source.fd, last.size()));
  source.hung_up = true;
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (run_anew() != pump_status::ended && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_TRUE(it.source_ended());
  ASSERT_TRUE(has_bytes(to.fd(), last.size()));
  to.pull();
  EXPECT_EQ(to.received, last);
}

TEST_P(Pump, ASinkThatIsGoneFails) {
  to.reset();
  pollfd gone{.fd = sink.fd, .events = 0, .revents = 0};
  ASSERT_EQ(poll(&gone, 1, 5'000), 1);
  from.push("lost");
  ASSERT_TRUE(has_bytes(source.fd, 4));
  EXPECT_EQ(run_anew(), pump_status::sink_failed);
  EXPECT_NE(sink.error, 0);
}

TEST_P(Pump, ABudgetEndsATurnOfBulk) {
  const auto much = random_bytes(400'000, 5);
  from.push(much);
  ASSERT_TRUE(has_bytes(source.fd, 120'000));
  source.readable = sink.writable = true;
  EXPECT_EQ(run(50'000), pump_status::spent);
  EXPECT_GE(sum.read, 50'000U);
  EXPECT_LT(sum.read, 50'000U + 65'536U);
  EXPECT_TRUE(source.readable);
}

INSTANTIATE_TEST_SUITE_P(Ways, Pump,
                         testing::Values(way::copies, way::copies_beside_short_pipes, way::splices),
                         [](const auto& each) {
                           if (each.param == way::splices) return "Kept";
                           return each.param == way::copies ? "Unkept" : "UnkeptBesideShortPipes";
                         });

}  // namespace
}  // namespace kubelane
