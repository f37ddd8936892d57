#include "proxy/relay.hpp"

#include "tests/support/lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <deque>
#include <random>
#include <utility>

namespace kubelane {
namespace {

using proxy::end_reason;
using test::lane;
using test::peer;
using test::random_bytes;
using test::test_listener;
using testing::ElementsAre;
using testing::Lt;
using namespace std::chrono_literals;

std::chrono::microseconds cpu_time() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

// One upstream and one listener; what most tests need.
struct Relay : testing::Test {
  Relay() {
    it.use({server.address()});
    it.listen();
  }
  test_listener server;
  lane it;
};

TEST_F(Relay, BytesArriveUnchangedBothWays) {
  auto [client, upstream] = it.pair(server);
  EXPECT_TRUE(it.carry(client, upstream, random_bytes(3'000'000, 1)));
  EXPECT_TRUE(it.carry(upstream, client, random_bytes(3'000'000, 2)));
}

TEST_F(Relay, BytesArriveUnchangedBothWaysAtOnceThroughSmallBuffers) {
  auto [client, upstream] = it.pair(server, 32 * 1024);
  client.set_buffers(32 * 1024);
  upstream.set_buffers(32 * 1024);
  const auto up = random_bytes(2'000'000, 3);
  const auto down = random_bytes(2'000'000, 4);
  std::size_t up_sent = 0;
  std::size_t down_sent = 0;
  EXPECT_TRUE(it.until(
      [&] {
        up_sent += client.push(std::string_view(up).substr(up_sent));
        down_sent += upstream.push(std::string_view(down).substr(down_sent));
        client.pull(1000);
        upstream.pull(3000);
        return client.received.size() == down.size() && upstream.received.size() == up.size();
      },
      60s));
  EXPECT_EQ(client.received, down);
  EXPECT_EQ(upstream.received, up);
}

TEST_F(Relay, ManyTinySegmentsAreAllSeenWithoutAnotherByteToWakeIt) {
  auto [client, upstream] = it.pair(server);
  // More segments than a pipe has places, all there before the relay looks: the first read is
  // short though there is more, and no edge will tell.
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const auto piece = random_bytes(7, static_cast<unsigned>(i));
    ASSERT_EQ(client.push(piece), piece.size());
    all += piece;
  }
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.received == all; }, 100ms));
}

TEST_F(Relay, TheClientsEndIsPassedOnAndTheAnswerStillComes) {
  auto [client, upstream] = it.pair(server);
  const auto question = random_bytes(300'000, 5);
  const auto answer = random_bytes(200'000, 6);
  EXPECT_TRUE(it.carry(client, upstream, question));
  client.end();
  const auto ended = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.saw_end; }));
  EXPECT_LT(std::chrono::steady_clock::now() - ended, 100ms);
  it.run_for(300ms);
  EXPECT_TRUE(it.carry(upstream, client, answer));
  upstream.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  EXPECT_EQ(client.received, answer);
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
  EXPECT_THAT(it.ends, ElementsAre(end_reason::client_closed));
}

TEST_F(Relay, TheServersEndIsPassedOnAndTheClientMayGoOn) {
  auto [client, upstream] = it.pair(server);
  upstream.end();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  EXPECT_TRUE(it.carry(client, upstream, random_bytes(300'000, 7)));
  client.close();
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.saw_end; }));
  EXPECT_FALSE(upstream.saw_reset);
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
  EXPECT_THAT(it.ends, ElementsAre(end_reason::server_closed));
}

TEST_F(Relay, BytesAndEndInOneMomentAreBothSeen) {
  auto [client, upstream] = it.pair(server);
  const auto last = random_bytes(100'000, 8);
  EXPECT_EQ(upstream.push(last), last.size());
  upstream.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  EXPECT_EQ(client.received, last);
}

TEST_F(Relay, AServersResetReachesTheClientAsAResetBehindTheTail) {
  auto [client, upstream] = it.pair(server);
  const auto tail = random_bytes(40'000, 9);
  EXPECT_EQ(upstream.push(tail), tail.size());
  it.run_for(20ms);
  upstream.reset();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset || client.saw_end; }));
  EXPECT_TRUE(client.saw_reset);
  EXPECT_EQ(client.received, tail);
  EXPECT_THAT(it.ends, ElementsAre(end_reason::server_reset));
}

TEST_F(Relay, AClientsResetReachesTheServerAsAResetBehindTheTail) {
  auto [client, upstream] = it.pair(server);
  const auto tail = random_bytes(40'000, 10);
  EXPECT_EQ(client.push(tail), tail.size());
  it.run_for(20ms);
  client.reset();
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.saw_reset || upstream.saw_end; }));
  EXPECT_TRUE(upstream.saw_reset);
  EXPECT_EQ(upstream.received, tail);
  EXPECT_THAT(it.ends, ElementsAre(end_reason::client_reset));
}

TEST_F(Relay, ATailThatTheClientHasNotReadYetIsDeliveredBeforeTheReset) {
  auto [client, upstream] = it.pair(server, 4096);
  const auto tail = random_bytes(60'000, 11);
  EXPECT_EQ(upstream.push(tail), tail.size());
  it.run_for(20ms);
  upstream.reset();
  it.run_for(500ms);
  EXPECT_TRUE(it.until([&] { return client.pull(1500), client.saw_reset || client.saw_end; }));
  EXPECT_TRUE(client.saw_reset);
  EXPECT_EQ(client.received, tail);
}

TEST_F(Relay, AClientThatNeverReadsDelaysAServersResetByAtMostFiveSeconds) {
  auto [client, upstream] = it.pair(server, 4096);
  const auto tail = random_bytes(100'000, 12);
  it.until([&] { return upstream.push(tail) == 0; });
  upstream.reset();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 8s));
  EXPECT_GT(std::chrono::steady_clock::now() - start, 4900ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5500ms);
}

TEST_F(Relay, AResetAfterAnEndIsStillAReset) {
  auto [client, upstream] = it.pair(server);
  upstream.push("bye");
  upstream.end();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  upstream.reset();
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
  EXPECT_THAT(it.ends, ElementsAre(end_reason::server_reset));
  client.push("x");
  client.saw_end = false;
  EXPECT_TRUE(it.until([&] { return client.push("x") == 0 && client.saw_reset; }));
}

TEST_F(Relay, AnEndAndAResetInOneMomentAreAReset) {
  auto [client, upstream] = it.pair(server);
  const auto tail = random_bytes(10'000, 13);
  client.push("unread by the server, so that its close becomes a reset");
  it.run_for(10ms);
  upstream.push(tail);
  upstream.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset || client.saw_end; }));
  EXPECT_TRUE(client.saw_reset);
  EXPECT_EQ(client.received, tail);
}

TEST_F(Relay, APairClosedOnOneSideAndSilentOnTheOtherEnds) {
  it.settings.relay.half_closed_timeout = 1s;
  it.path.configure(it.settings);
  auto [client, upstream] = it.pair(server);
  client.end();
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.saw_end; }));
  for (int i = 0; i < 8; ++i) {  // not silent yet
    it.run_for(200ms);
    EXPECT_TRUE(it.carry(upstream, client, "."));
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset; }, 10s));
  EXPECT_GT(std::chrono::steady_clock::now() - start, 950ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2500ms);
  EXPECT_THAT(it.ends, ElementsAre(end_reason::half_closed_timeout));
}

TEST_F(Relay, AQuietPairStays) {
  it.settings.relay.half_closed_timeout = 1s;
  it.path.configure(it.settings);
  auto [client, upstream] = it.pair(server);
  it.run_for(3s);
  EXPECT_TRUE(it.carry(upstream, client, "late"));
  EXPECT_TRUE(it.carry(client, upstream, "later"));
}

TEST_F(Relay, ABulkStreamDoesNotHoldUpAnother) {
  auto [bulk, bulk_upstream] = it.pair(server);
  auto [quick, quick_upstream] = it.pair(server);
  const std::string chunk(1 << 20, 'b');
  std::size_t moved = 0;
  std::chrono::steady_clock::duration worst{};
  for (int i = 0; i < 200; ++i) {
    bulk_upstream.push(chunk);
    const auto start = std::chrono::steady_clock::now();
    quick.push("q");
    quick_upstream.received.clear();
    ASSERT_TRUE(it.until([&] { return quick_upstream.pull(), !quick_upstream.received.empty(); }));
    worst = std::max(worst, std::chrono::steady_clock::now() - start);
    while (bulk.pull()) continue;
    moved += bulk.received.size();
    bulk.received.clear();
  }
  EXPECT_GT(moved, 10u << 20);
  EXPECT_LT(worst, 50ms);
}

// Pairs in states in which a careless loop is woken for ever, each many times.
struct Spin : Relay {
  std::deque<std::pair<peer, peer>> pairs;
  void expect_calm() {
    it.run_for(1s);  // let everything settle
    const auto before = cpu_time();
    const auto turns = it.loop.turn_number();
    const auto end = std::chrono::steady_clock::now() + 5s;
    while (std::chrono::steady_clock::now() < end) it.loop.turn(1s);
    EXPECT_LT(cpu_time() - before, 50ms);  // 0.3 s in 30 s
    EXPECT_LT(it.loop.turn_number() - turns, 5u * (20 + 10) + 60)
        << "more than the loop's own ticks";
  }
};

TEST_F(Spin, NotOnClientsThatSaidFinToASilentServer) {
  for (int i = 0; i < 50; ++i) pairs.push_back(it.pair(server));
  for (auto& [client, upstream] : pairs) client.end();
  expect_calm();
  EXPECT_EQ(it.path.connections(), 50u);
}

TEST_F(Spin, NotOnServersThatResetWhileTheClientsDoNotRead) {
  for (int i = 0; i < 50; ++i) pairs.push_back(it.pair(server, 4096));
  const std::string much(300'000, 'm');
  for (auto& [client, upstream] : pairs) upstream.push(much);
  it.run_for(100ms);
  for (auto& [client, upstream] : pairs) upstream.reset();
  it.run_for(200ms);
  const auto before = cpu_time();
  it.run_for(4s);
  EXPECT_LT(cpu_time() - before, 1s) << "the turns of the test's own loop";
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 3s));
}

TEST_F(Spin, NotOnEndsBothWaysWithBytesQueuedForASlowReader) {
  for (int i = 0; i < 50; ++i) pairs.push_back(it.pair(server, 4096));
  const std::string much(64 * 1024, 'm');
  for (auto& [client, upstream] : pairs) {
    upstream.push(much);
    client.end();
    upstream.end();
  }
  it.run_for(200ms);
  for (int second = 0; second < 2; ++second) {
    for (auto& [client, upstream] : pairs) client.pull(1);
    it.run_for(200ms);
  }
  expect_calm();
  for (auto& [client, upstream] : pairs) {
    EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
    EXPECT_EQ(client.received.size(), much.size());
  }
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
}

TEST_F(Relay, AnIdlePairTakesLittleMemory) {
  std::deque<std::pair<peer, peer>> pairs;
  for (int i = 0; i < 50; ++i) pairs.push_back(it.pair(server));
  EXPECT_LE(sizeof(proxy::relay) + sizeof(proxy::traffic), 640u);
  EXPECT_EQ(it.path.connections(), 50u);
}

TEST_F(Relay, TransfersAreNotedAtTheUpstream) {
  auto [client, upstream] = it.pair(server);
  const auto before = it.pool.activity_of(it.id(0));
  EXPECT_TRUE(it.carry(client, upstream, std::string(1000, 'u')));
  EXPECT_EQ(it.pool.activity_of(it.id(0)).bytes_up - before.bytes_up, 1000u);
  EXPECT_NE(it.pool.activity_of(it.id(0)).unanswered_since, proxy::time_point{});
  EXPECT_TRUE(it.carry(upstream, client, std::string(500, 'd')));
  EXPECT_EQ(it.pool.activity_of(it.id(0)).bytes_down - before.bytes_down, 500u);
  EXPECT_EQ(it.pool.activity_of(it.id(0)).unanswered_since, proxy::time_point{});
  EXPECT_GT(it.pool.activity_of(it.id(0)).last_heard, before.last_heard);
}

TEST_F(Relay, AClientThatSaysFinIsNoSuspicionButAnotherOnesBytesStillAre) {
  auto [first, first_upstream] = it.pair(server);
  auto [second, second_upstream] = it.pair(server);
  EXPECT_TRUE(it.carry(first, first_upstream, "question"));
  it.run_for(20ms);
  EXPECT_TRUE(it.carry(second, second_upstream, "question"));
  const auto since = it.pool.activity_of(it.id(0)).unanswered_since;
  first.end();
  EXPECT_TRUE(it.until([&] { return first_upstream.pull(), first_upstream.saw_end; }));
  EXPECT_GT(it.pool.activity_of(it.id(0)).unanswered_since, since);
  second.end();
  EXPECT_TRUE(it.until([&] { return second_upstream.pull(), second_upstream.saw_end; }));
  EXPECT_EQ(it.pool.activity_of(it.id(0)).unanswered_since, proxy::time_point{});
}

// Pairs that talk, end and break at random, each byte compared.
struct Conversations : Relay {
  struct talk {
    peer client, server;
    std::string up, down;
    std::size_t up_sent = 0, down_sent = 0;
    bool up_ended = false, down_ended = false;
  };

  int roll(int sides) { return std::uniform_int_distribution<>(0, sides - 1)(random); }
  std::size_t size(int most) { return static_cast<std::size_t>(roll(most)); }

  talk begin() {
    auto [client, upstream] = it.pair(server, roll(2) == 0 ? 32 * 1024 : 0);
    return {.client = std::move(client),
            .server = std::move(upstream),
            .up = random_bytes(size(300'000), static_cast<unsigned>(random())),
            .down = random_bytes(size(300'000), static_cast<unsigned>(random()))};
  }
  static bool is_prefix(const std::string& part, const std::string& whole) {
    return whole.compare(0, part.size(), part) == 0;
  }
  void step(talk& one) {
    one.up_sent += one.client.push(std::string_view(one.up).substr(one.up_sent, size(40'000)));
    one.down_sent +=
        one.server.push(std::string_view(one.down).substr(one.down_sent, size(40'000)));
    if (one.up_sent == one.up.size() && !std::exchange(one.up_ended, true)) one.client.end();
    if (one.down_sent == one.down.size() && !std::exchange(one.down_ended, true)) one.server.end();
    one.client.pull(size(50'000) + 1);
    one.server.pull(size(50'000) + 1);
    ASSERT_TRUE(is_prefix(one.server.received, one.up));
    ASSERT_TRUE(is_prefix(one.client.received, one.down));
    ASSERT_FALSE(one.client.saw_reset || one.server.saw_reset);
  }
  // One side resets, the other one has to see exactly that.
  void break_off(talk& one) {
    const bool client_breaks = roll(2) == 0;
    peer& breaker = client_breaks ? one.client : one.server;
    peer& other = client_breaks ? one.server : one.client;
    const auto& sent = client_breaks ? one.up : one.down;
    const bool had_ended = client_breaks ? one.up_ended : one.down_ended;
    breaker.reset();
    ASSERT_TRUE(it.until([&] { return other.pull(), other.saw_reset || other.saw_end; }));
    EXPECT_TRUE(is_prefix(other.received, sent));
    if (had_ended) return;
    EXPECT_TRUE(other.saw_reset) << "a cut must not look like an end";
  }

  std::mt19937 random{7};
};

TEST_F(Conversations, EveryByteArrivesAndEveryCutIsACut) {
  std::deque<talk> talks;
  int finished = 0;
  int broken = 0;
  while (finished + broken < 400) {
    if (talks.size() < 20) talks.push_back(begin());
    for (auto& one : talks) ASSERT_NO_FATAL_FAILURE(step(one));
    it.loop.turn(0ms);
    for (auto one = talks.begin(); one != talks.end();) {
      const bool whole = one->client.saw_end && one->server.saw_end;
      const bool breaks = !whole && roll(120) == 0;
      if (whole) {
        EXPECT_EQ(one->client.received.size(), one->down.size());
        EXPECT_EQ(one->server.received.size(), one->up.size());
      }
      if (breaks) {
        ASSERT_NO_FATAL_FAILURE(break_off(*one));
      }
      finished += whole ? 1 : 0;
      broken += breaks ? 1 : 0;
      one = whole || breaks ? talks.erase(one) : one + 1;
    }
  }
  talks.clear();
  EXPECT_GT(finished, 100);
  EXPECT_GT(broken, 30);
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 10s));
}

}  // namespace
}  // namespace kubelane
