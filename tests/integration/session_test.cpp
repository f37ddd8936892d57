#include "proxy/session.hpp"

#include "tests/support/lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane {
namespace {

using proxy::end_reason;
using test::client_hello;
using test::lane;
using test::peer;
using test::random_bytes;
using test::test_listener;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

// Two servers, the first of which is dialled first.
struct Session : testing::Test {
  Session() {
    it.use({first.address(), second.address()});
    it.listen();
  }
  // Nothing may come for a while.
  void expect_nothing(peer& at, std::chrono::milliseconds time) {
    EXPECT_FALSE(it.until([&] { return at.pull(); }, time)) << at.received;
  }
  std::chrono::milliseconds since_start() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 start);
  }

  test_listener first;
  test_listener second;
  lane it;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

TEST_F(Session, AServerIsDialledBeforeTheClientSaysAnything) {
  auto client = it.client();
  auto server = it.accept(first);
  EXPECT_TRUE(it.carry(server, client, "the server speaks first"));
  EXPECT_TRUE(it.carry(client, server, "and the client answers"));
  EXPECT_THAT(it.dials, ElementsAre("cp1 connected"));
}

TEST_F(Session, ARefusalIsNotSeenByTheClient) {
  first.close();
  auto client = it.client();
  auto server = it.accept(second);
  EXPECT_TRUE(it.carry(client, server, "hello"));
  EXPECT_TRUE(it.carry(server, client, "answer"));
  EXPECT_LT(since_start(), 200ms);
  EXPECT_THAT(it.dials, ElementsAre("cp1 refused", "cp2 connected"));
  EXPECT_THAT(it.hedges, IsEmpty());
}

TEST_F(Session, WhenAllRefuseTheClientIsResetAtOnce) {
  first.close();
  second.close();
  auto client = it.client();
  client.push(client_hello());
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset; }));
  EXPECT_LT(since_start(), 200ms);
  EXPECT_THAT(it.ends, ElementsAre(end_reason::no_upstream));
  EXPECT_EQ(it.path.connections(), 0u);
}

TEST_F(Session, ASilentServerIsHedgedAfter250Milliseconds) {
  first.stuff();
  auto client = it.client();
  client.push(client_hello());
  auto server = it.accept(second);
  EXPECT_GE(since_start(), 245ms);
  EXPECT_LT(since_start(), 400ms);
  EXPECT_TRUE(it.carry(server, client, "served"));
  EXPECT_EQ(server.received, "");
  EXPECT_THAT(it.dials, ElementsAre("cp2 connected", "cp1 abandoned"));
  EXPECT_THAT(it.hedges, ElementsAre("dial"));
}

TEST_F(Session, WhenAllAreSilentTheClientIsResetAtTheTotal) {
  it.settings.dial.total_timeout = 1200ms;
  it.path.configure(it.settings);
  first.stuff();
  second.stuff();
  auto client = it.client();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset; }));
  EXPECT_GE(since_start(), 1190ms);
  EXPECT_LT(since_start(), 1500ms);
  EXPECT_THAT(it.ends, ElementsAre(end_reason::no_upstream));
}

TEST_F(Session, AFrozenServersHelloIsSentToAnotherAfter500Milliseconds) {
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  auto frozen = it.accept(first);
  auto server = it.accept(second);
  EXPECT_GE(since_start(), 495ms);
  EXPECT_LT(since_start(), 750ms);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.carry(server, client, "server hello"));
  EXPECT_TRUE(it.until([&] { return frozen.pull(), frozen.saw_reset; }));
  EXPECT_EQ(frozen.received, hello);
  EXPECT_THAT(it.hedges, ElementsAre("first_flight"));
  EXPECT_TRUE(it.carry(client, server, random_bytes(100'000, 1)));
  EXPECT_EQ(server.received.size(), hello.size() + 100'000) << "the hello was not sent again";
}

TEST_F(Session, TheFirstServerMayStillWinAfterAReplay) {
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  auto slow = it.accept(first);
  auto other = it.accept(second);
  EXPECT_TRUE(it.until([&] { return other.pull(), other.received == hello; }));
  EXPECT_TRUE(it.carry(slow, client, "late, but first"));
  EXPECT_TRUE(it.until([&] { return other.pull(), other.saw_reset; }));
  EXPECT_TRUE(it.until([&] { return slow.pull(), slow.received == hello; }));
  EXPECT_TRUE(it.carry(client, slow, "more"));
}

TEST_F(Session, AHelloInPiecesIsReplayedWhole) {
  const auto hello = client_hello(2000);
  auto client = it.client();
  client.push(hello.substr(0, 700));
  auto frozen = it.accept(first);
  EXPECT_TRUE(it.until([&] { return frozen.pull(), frozen.received.size() == 700; }));
  it.run_for(700ms);
  EXPECT_THAT(it.hedges, IsEmpty()) << "it is not whole yet";
  client.push(hello.substr(700));
  auto server = it.accept(second);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.until([&] { return frozen.pull(), frozen.received == hello; }));
}

TEST_F(Session, APlainFlightIsNeverSentTwice) {
  auto client = it.client();
  client.push("POST /never/twice HTTP/1.1\r\n\r\n");
  auto frozen = it.accept(first);
  EXPECT_TRUE(it.until([&] { return frozen.pull(), frozen.received.size() > 20; }));
  it.run_for(1500ms);
  EXPECT_FALSE(second.accept());
  frozen.reset();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset; })) << "passed on as it came";
  it.run_for(50ms);
  EXPECT_FALSE(second.accept());
}

TEST_F(Session, APlainFlightsServerEndsAndTheEndIsPassedOn) {
  auto client = it.client();
  client.push("GET / HTTP/1.1\r\n\r\n");
  auto server = it.accept(first);
  EXPECT_TRUE(it.until([&] { return server.pull(), !server.received.empty(); }));
  server.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  EXPECT_FALSE(second.accept());
}

TEST_F(Session, AFlightTooLongToLookAtIsRelayed) {
  const auto huge = client_hello(16'200) + random_bytes(400'000, 2);
  auto client = it.client();
  auto server = it.accept(first);
  EXPECT_TRUE(it.carry(client, server, huge));
  EXPECT_TRUE(it.carry(server, client, "fine"));
  EXPECT_TRUE(it.carry(client, server, "more"));
}

TEST_F(Session, AServerThatEndsOnAHelloIsNotSeenByTheClient) {
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  auto leaving = it.accept(first);
  EXPECT_TRUE(it.until([&] { return leaving.pull(), leaving.received == hello; }));
  leaving.close();
  auto server = it.accept(second);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.carry(server, client, "served"));
  EXPECT_LT(since_start(), 300ms);
  EXPECT_THAT(it.dials, ElementsAre("cp1 connected", "cp1 lost", "cp2 connected"));
}

TEST_F(Session, AServerThatResetsOnAHelloIsNotSeenByTheClient) {
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  auto leaving = it.accept(first);
  EXPECT_TRUE(it.until([&] { return leaving.pull(), leaving.received == hello; }));
  leaving.reset();
  auto server = it.accept(second);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.carry(server, client, "served"));
}

TEST_F(Session, AServerThatEndsOnASilentClientIsReplaced) {
  auto client = it.client();
  { auto leaving = it.accept(first); }
  auto server = it.accept(second);
  EXPECT_TRUE(it.carry(client, server, "now I speak"));
}

TEST_F(Session, OnceTheTotalIsOverASilentClientsServerMayEnd) {
  it.settings.dial.total_timeout = 300ms;
  it.path.configure(it.settings);
  auto client = it.client();
  auto server = it.accept(first);
  EXPECT_TRUE(it.until([&] { return it.path.dialling() == 0; }));
  EXPECT_GE(since_start(), 295ms);
  server.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
  EXPECT_FALSE(second.accept());
}

TEST_F(Session, WhenEveryServerEndsTheClientIsReset) {
  auto client = it.client();
  client.push(client_hello());
  { auto leaving = it.accept(first); }
  { auto leaving = it.accept(second); }
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_reset || client.saw_end; }));
  EXPECT_TRUE(client.saw_reset);
}

TEST_F(Session, AClientThatLeavesDuringTheDialEndsIt) {
  first.stuff();
  second.stuff();
  auto gone = it.client();
  auto closed = it.client();
  EXPECT_TRUE(it.until([&] { return it.path.dialling() == 2; }));
  gone.push("bytes before the reset");
  gone.reset();
  closed.end();
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 200ms));
  EXPECT_THAT(it.ends,
              testing::UnorderedElementsAre(end_reason::client_reset, end_reason::client_closed));
  EXPECT_TRUE(it.until([&] { return closed.pull(), closed.saw_end; }));
}

TEST_F(Session, AClientThatSaidFinBehindItsHelloIsStillServed) {
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  client.end();
  auto server = it.accept(first);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.carry(server, client, "answer"));
  EXPECT_TRUE(it.until([&] { return server.pull(), server.saw_end; }));
  server.close();
  EXPECT_TRUE(it.until([&] { return client.pull(), client.saw_end; }));
}

TEST_F(Session, AFlightWithoutAnAnswerIsASuspicion) {
  auto client = it.client();
  client.push(client_hello());
  auto frozen = it.accept(first);
  EXPECT_TRUE(it.until([&] { return frozen.pull(); }));
  EXPECT_NE(it.pool.activity_of(it.id(0)).unanswered_since, proxy::time_point{});
  client.reset();
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
  EXPECT_EQ(it.pool.activity_of(it.id(0)).unanswered_since, proxy::time_point{});
}

TEST_F(Session, AnUpstreamThatWasRemovedMeanwhileIsNotDialled) {
  first.stuff();
  auto client = it.client();
  EXPECT_TRUE(it.until([&] { return it.path.dialling() == 1; }));
  it.use({first.address()});
  it.run_for(400ms);
  EXPECT_FALSE(second.accept());
  EXPECT_EQ(it.path.dialling(), 1u);
}

TEST_F(Session, AHungServersDialsGoToTheNextAtOnce) {
  auto client = it.client();
  client.push(client_hello());
  auto hung = it.accept(first);
  EXPECT_TRUE(it.until([&] { return hung.pull(); }));
  it.path.apply(proxy::reset_connections{it.id(0), "hung", 0ms});
  auto server = it.accept(second);
  EXPECT_LT(since_start(), 300ms);
  EXPECT_TRUE(it.carry(server, client, "served"));
  EXPECT_THAT(it.dials, ElementsAre("cp1 connected", "cp2 connected"));
}

TEST_F(Session, AHungServersClientIsServedEvenAfterTheTotal) {
  it.settings.dial.total_timeout = 400ms;
  it.settings.dial.first_answer = 10s;  // no replay: as if the budget were empty
  it.path.configure(it.settings);
  const auto hello = client_hello();
  auto client = it.client();
  client.push(hello);
  auto hung = it.accept(first);
  it.run_for(600ms);
  EXPECT_EQ(it.path.dialling(), 1u);
  it.path.apply(proxy::reset_connections{it.id(0), "hung", 0ms});
  auto server = it.accept(second);
  EXPECT_TRUE(it.until([&] { return server.pull(), server.received == hello; }));
  EXPECT_TRUE(it.carry(server, client, "served"));
}

TEST_F(Session, ThisNodesOwnTroubleIsSaidOnceAndBlamesNobody) {
  it.use({*net::parse_endpoint("255.255.255.255:6443", 0), second.address()});
  for (int i = 0; i < 3; ++i) {
    auto client = it.client();
    auto server = it.accept(second);
  }
  EXPECT_THAT(it.dials, Contains("cp1 local_trouble").Times(3));
  EXPECT_THAT(it.problems,
              ElementsAre("cannot dial any upstream from here: Network is unreachable"));
}

TEST_F(Session, NothingIsLeftBehindWhenTheDataPathGoesAway) {
  first.stuff();
  auto dialling = it.client();
  it.until([&] { return it.path.dialling() == 1; });
  SUCCEED() << "the sanitizer and the reactor's assertions tell";
}

}  // namespace
}  // namespace kubelane
