#include "proxy/data_path.hpp"

#include "tests/support/lane.hpp"
#include "tests/support/poll_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <malloc.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <deque>
#include <thread>

namespace kubelane {
namespace {

using proxy::end_reason;
using test::client_hello;
using test::lane;
using test::peer;
using test::random_bytes;
using test::test_listener;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

bool is_over(peer& at) {
  at.pull();
  return at.saw_end || at.saw_reset;
}

struct DataPath : testing::Test {
  DataPath() {
    it.use({server.address()});
    it.listen();
  }
  void fill(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) pairs.push_back(it.pair(server));
  }
  std::size_t count_over() {
    std::size_t result = 0;
    for (auto& [client, upstream] : pairs) result += is_over(client) && is_over(upstream) ? 1 : 0;
    return result;
  }

  test_listener server;
  lane it;
  std::deque<std::pair<peer, peer>> pairs;
};

TEST_F(DataPath, ListenersOfEitherFamilyReachServersOfEither) {
  test_listener v6("::1");
  const auto v6_address = it.listen("::1");
  auto client = test::connect_to(v6_address);
  auto upstream = it.accept(server);
  EXPECT_TRUE(it.carry(client, upstream, "from IPv6 to IPv4"));
  it.use({v6.address()});
  auto other = it.client();
  auto other_upstream = it.accept(v6);
  EXPECT_TRUE(it.carry(other, other_upstream, "from IPv4 to IPv6"));
  EXPECT_TRUE(it.carry(other_upstream, other, "and back"));
}

TEST_F(DataPath, AnIpv6ListenerLeavesIpv4ToOthers) {
  const int v6 = proxy::open_listener({boost::asio::ip::make_address("::"), 0}).value();
  const auto port = net::local_of(v6)->port();
  const auto v4 = proxy::open_listener({boost::asio::ip::make_address("0.0.0.0"), port});
  EXPECT_TRUE(v4.has_value());
  close(v6);
  if (v4) close(*v4);
}

TEST_F(DataPath, LoopbackListenersAreBoundToTheLoopbackDevice) {
  for (const char* address : {"127.0.0.1", "127.0.0.53", "::1"}) {
    const int fd = proxy::open_listener({boost::asio::ip::make_address(address), 0}).value();
    char device[IFNAMSIZ] = "";
    socklen_t size = sizeof device;
    getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, &size);
    EXPECT_STREQ(device, "lo") << address;
    it.path.listen(fd);  // looks first: setting it again would fail
    auto client = test::connect_to(*net::local_of(fd));
    auto upstream = it.accept(server);
    EXPECT_TRUE(it.carry(client, upstream, "still served"));
  }
}

TEST_F(DataPath, AnAddressInUseIsAnError) {
  const auto again = proxy::open_listener(it.first_listener);
  ASSERT_TRUE(again.has_error());
  EXPECT_EQ(again.error(), boost::system::errc::address_in_use);
}

TEST_F(DataPath, SeveralAddressesAreOpenedTogetherOrNotAtAll) {
  const net::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
  const auto held = proxy::open_together({any, it.first_listener});
  EXPECT_EQ(held.busy, it.first_listener);
  EXPECT_TRUE(held.sockets.empty());

  const net::endpoint nowhere(boost::asio::ip::make_address("192.0.2.1"), 0);
  const auto opened = proxy::open_together({any, nowhere});
  ASSERT_FALSE(opened.busy);
  ASSERT_EQ(opened.sockets.size(), 2u);
  EXPECT_EQ(opened.sockets[1].error(), boost::system::errc::address_not_available);
  pollfd waiting{.fd = opened.sockets[0].value(), .events = POLLIN, .revents = 0};
  const auto client = test::connect_to(*net::local_of(waiting.fd));
  EXPECT_EQ(poll(&waiting, 1, 5000), 1);
  close(waiting.fd);
}

TEST_F(DataPath, StoppedListenersRefuseAndConnectionsStay) {
  fill(1);
  it.path.stop_accepting();
  auto late = it.client();
  EXPECT_TRUE(it.until([&] { return late.pull(), late.saw_reset; }));
  auto& [client, upstream] = pairs[0];
  EXPECT_TRUE(it.carry(client, upstream, "still here"));
}

TEST_F(DataPath, ClientsThatWaitWhenTheListenersStopAreServed) {
  auto waiting = it.client();
  it.path.stop_accepting();
  auto upstream = it.accept(server);
  EXPECT_TRUE(it.carry(waiting, upstream, "in time"));
}

// The proxy's own sockets of which `select` says so.
template <typename Select>
std::vector<int> own_sockets(const Select& select) {
  std::vector<int> result;
  for (int fd = 3; fd < 200; ++fd)
    if (select(fd)) result.push_back(fd);
  return result;
}

int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  getsockopt(fd, level, name, &value, &size);
  return value;
}

TEST_F(DataPath, ServersAreKeptAliveOnceAConnectionIsOld) {
  fill(1);
  const auto to_server = own_sockets([&](int fd) { return net::peer_of(fd) == server.address(); });
  ASSERT_EQ(to_server.size(), 1u);
  const int fd = to_server[0];
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0) << "short connections do without the calls";
  it.run_for(2200ms);
  EXPECT_EQ(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0) << "it would count a closed window";
}

TEST_F(DataPath, ClientsOfOtherHostsAreKeptAlive) {
  const auto outside = it.listen("0.0.0.0");
  auto remote = test::connect_to({boost::asio::ip::address_v4::loopback(), outside.port()});
  auto remote_upstream = it.accept(server);
  fill(1);
  for (const auto port : {outside.port(), it.first_listener.port()}) {
    const auto clients = own_sockets([&](int fd) {
      const auto here = net::local_of(fd);
      return here && here->port() == port && net::peer_of(fd);
    });
    ASSERT_EQ(clients.size(), 1u);
    const bool is_remote = port == outside.port();
    EXPECT_EQ(option(clients[0], IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(clients[0], SOL_SOCKET, SO_KEEPALIVE), is_remote ? 1 : 0);
    if (!is_remote) continue;
    EXPECT_EQ(option(clients[0], IPPROTO_TCP, TCP_KEEPIDLE), 60);
    EXPECT_EQ(option(clients[0], IPPROTO_TCP, TCP_KEEPINTVL), 10);
    EXPECT_EQ(option(clients[0], IPPROTO_TCP, TCP_KEEPCNT), 3);
  }
}

TEST_F(DataPath, ClientsBeyondTheLimitAreResetAtOnce) {
  it.settings.limits.connections = 5;
  it.path.configure(it.settings);
  fill(5);
  auto sixth = it.client();
  EXPECT_TRUE(it.until([&] { return sixth.pull(), sixth.saw_reset; }));
  EXPECT_THAT(it.rejections, ElementsAre("limit"));
  pairs.pop_front();
  it.run_for(20ms);
  fill(1);
  EXPECT_EQ(it.path.connections(), 5u);
}

TEST_F(DataPath, TheLastTenthOfTheLimitIsRoots) {
  if (getuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  it.settings.limits.connections = 20;
  it.path.configure(it.settings);
  fill(18);
  int answer[2];
  ASSERT_EQ(pipe(answer), 0);
  const auto child = fork();
  if (child == 0) {  // another user's client
    const bool became_nobody = setgid(65534) == 0 && setuid(65534) == 0;
    auto client = test::connect_to(it.first_listener);
    for (int i = 0; i < 2000 && !client.pull(); ++i) std::this_thread::sleep_for(1ms);
    const char verdict = became_nobody && client.saw_reset ? 'r' : '?';
    _exit(write(answer[1], &verdict, 1) == 1 ? 0 : 1);
  }
  EXPECT_TRUE(it.until([&] { return !it.rejections.empty(); }));
  EXPECT_THAT(it.rejections, ElementsAre("reserved"));
  char verdict = 0;
  EXPECT_EQ(read(answer[0], &verdict, 1), 1);
  EXPECT_EQ(verdict, 'r');
  waitpid(child, nullptr, 0);
  close(answer[0]);
  close(answer[1]);
  fill(2);  // root's
  EXPECT_EQ(it.path.connections(), 20u);
}

TEST_F(DataPath, WhileEverythingIsDownDialsAreLimited) {
  server.close();
  const auto now = it.loop.now();
  it.pool.report_probe(it.id(0),
                       {.result = health::outcome::refused,
                        .reached = health::phase::connect,
                        .started = now,
                        .finished = now,
                        .detail = "",
                        .loop_lag = 0ms},
                       now);
  it.run_for(150ms);
  ASSERT_TRUE(it.pool.status(it.loop.now()).all_down);
  int clients = 0;
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (std::chrono::steady_clock::now() < end) {
    auto client = it.client();
    ASSERT_TRUE(it.until([&] { return client.pull(), client.saw_reset; }));
    ++clients;
  }
  EXPECT_GT(clients, 200);
  EXPECT_LT(it.dials.size(), 100u);
  EXPECT_GT(it.dials.size(), 50u);
  EXPECT_THAT(it.rejections, Each(std::string("all_down")));
}

TEST_F(DataPath, AResetReachesBothSidesWithinItsSpread) {
  fill(40);
  const auto start = std::chrono::steady_clock::now();
  it.path.apply(proxy::reset_connections{it.id(0), "hung", 300ms});
  it.run_for(150ms);
  const auto half_way = count_over();
  EXPECT_GT(half_way, 8u);
  EXPECT_LT(half_way, 32u);
  EXPECT_TRUE(it.until([&] { return count_over() == 40; }, 400ms));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 450ms);
  for (auto& [client, upstream] : pairs) EXPECT_TRUE(client.saw_reset && upstream.saw_reset);
  EXPECT_THAT(it.ends, Each(end_reason::reset_hung));
  EXPECT_EQ(it.resets, std::vector<std::string>(40, "hung"));
}

TEST_F(DataPath, AResetWithoutSpreadIsAtOnce) {
  fill(10);
  it.path.apply(proxy::reset_connections{it.id(0), "dead", 0ms});
  EXPECT_TRUE(it.until([&] { return count_over() == 10; }, 50ms));
  EXPECT_THAT(it.ends, Each(end_reason::reset_dead));
}

TEST_F(DataPath, ConnectionsOpenedAfterAResetWasAskedForAreNotMeant) {
  fill(1);
  it.path.apply(proxy::reset_connections{it.id(0), "hung", 200ms});
  fill(1);
  it.run_for(400ms);
  EXPECT_TRUE(is_over(pairs[0].first));
  EXPECT_FALSE(is_over(pairs[1].first));
}

TEST_F(DataPath, AnotherUpstreamsConnectionsStay) {
  test_listener other;
  fill(2);
  const auto old = it.id(0);
  it.use({other.address()});
  auto kept = it.pair(other);
  it.path.apply(proxy::reset_connections{old, "dead", 0ms});
  EXPECT_TRUE(it.until([&] { return count_over() == 2; }));
  EXPECT_TRUE(it.carry(kept.first, kept.second, "untouched"));
}

TEST_F(DataPath, WhatIsCalledOffStays) {
  fill(20);
  it.path.apply(proxy::reset_connections{it.id(0), "hung", 400ms});
  it.run_for(100ms);
  it.path.apply(proxy::call_off{it.id(0)});
  const auto gone = count_over();
  EXPECT_LT(gone, 15u);
  it.run_for(500ms);
  EXPECT_EQ(count_over(), gone);
}

TEST_F(DataPath, DrainedConnectionsSeeAnEndBothWays) {
  fill(20);
  it.path.apply(proxy::drain_connections{it.id(0), "etcd", 300ms, 0ms});
  it.run_for(150ms);
  EXPECT_GT(count_over(), 3u);
  EXPECT_LT(count_over(), 17u);
  EXPECT_TRUE(it.until([&] { return count_over() == 20; }, 1s));
  for (auto& [client, upstream] : pairs) {
    EXPECT_TRUE(client.saw_end && upstream.saw_end);
    client.close();
    upstream.close();
  }
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 500ms));
  EXPECT_THAT(it.ends, Each(end_reason::drained));
  EXPECT_EQ(it.resets, std::vector<std::string>(20, "etcd"));
}

TEST_F(DataPath, ADrainedConnectionIsResetAfterASecondIfItsPeersStay) {
  fill(1);
  auto& [client, upstream] = pairs[0];
  it.path.apply(proxy::drain_connections{it.id(0), "other", 0ms, 0ms});
  EXPECT_TRUE(it.until([&] { return count_over() == 1; }));
  EXPECT_TRUE(client.saw_end && upstream.saw_end);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }));
  EXPECT_GT(std::chrono::steady_clock::now() - start, 900ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 1200ms);
  client.saw_end = false;
  EXPECT_TRUE(it.until([&] { return client.push("x"), client.pull(), client.saw_reset; }));
}

TEST_F(DataPath, ADrainDeliversWhatIsInFlightFirst) {
  pairs.push_back(it.pair(server, 8192));
  auto& [client, upstream] = pairs[0];
  const auto answer = random_bytes(300'000, 1);
  std::size_t sent = 0;
  it.until([&] {
    const auto before = sent;
    sent += upstream.push(std::string_view(answer).substr(sent));
    return sent == before || sent == answer.size();
  });
  const auto request = random_bytes(1000, 2);
  client.push(request);
  it.path.apply(proxy::drain_connections{it.id(0), "other", 0ms, 0ms});
  EXPECT_TRUE(it.until([&] { return upstream.pull(), upstream.saw_end; }));
  EXPECT_EQ(upstream.received, request);
  EXPECT_TRUE(it.until([&] { return client.pull(20'000), client.saw_end || client.saw_reset; }));
  EXPECT_TRUE(client.saw_end);
  EXPECT_EQ(client.received, answer.substr(0, client.received.size()));
  EXPECT_GE(client.received.size(), 65'536u) << "the pipe and the buffers";
}

TEST_F(DataPath, ABusyConnectionIsLeftUntilItIsQuiet) {
  fill(1);
  auto& [client, upstream] = pairs[0];
  it.path.apply(proxy::drain_connections{it.id(0), "removed", 0ms, 60s});
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(it.carry(upstream, client, "busy"));
    it.run_for(100ms);
  }
  EXPECT_FALSE(is_over(client));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] { return is_over(client); }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, 400ms);
  EXPECT_EQ(it.resets, std::vector<std::string>{"removed"});
}

TEST_F(DataPath, ABusyConnectionIsNotLeftForEver) {
  fill(1);
  auto& [client, upstream] = pairs[0];
  it.path.apply(proxy::drain_connections{it.id(0), "shutdown", 0ms, 500ms});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(it.until([&] {
    upstream.push("b");
    return is_over(client);
  }));
  EXPECT_GT(std::chrono::steady_clock::now() - start, 480ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 700ms);
}

TEST_F(DataPath, TheEndIsInOrderWithinItsSpreadAndDiallingClientsAreReset) {
  fill(20);
  it.use({server.address()});
  test_listener silent;
  silent.stuff();
  it.use({silent.address()});
  auto dialling = it.client();
  EXPECT_TRUE(it.until([&] { return it.path.dialling() == 1; }));
  it.path.stop_accepting();
  it.path.close_all(300ms);
  EXPECT_TRUE(it.until([&] { return dialling.pull(), dialling.saw_reset; }, 100ms));
  EXPECT_LT(count_over(), 17u);
  EXPECT_TRUE(it.until([&] { return count_over() == 20; }, 1s));
  for (auto& [client, upstream] : pairs) EXPECT_TRUE(client.saw_end && upstream.saw_end);
  EXPECT_TRUE(it.until([&] { return it.path.connections() == 0; }, 1500ms));
  EXPECT_THAT(it.ends, Each(end_reason::shutdown));
  EXPECT_THAT(it.resets, IsEmpty());
}

TEST_F(DataPath, AnIdlePairTakesLessThanTwoAndAHalfKibibytes) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
#else
  fill(20);  // what is allocated once
  it.run_for(1500ms);
  const auto before = mallinfo2().uordblks;
  fill(1000);
  it.run_for(1500ms);
  const auto ours = mallinfo2().uordblks - before - 1000 * sizeof(pairs[0]);
  RecordProperty("bytes", static_cast<int>(ours / 1000));
  EXPECT_LT(ours / 1000, 2560u);
#endif
}

// No new descriptor for as long as this lives.
struct no_descriptors {
  no_descriptors() {
    getrlimit(RLIMIT_NOFILE, &before);
    const int next = dup(0);
    close(next);
    const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~no_descriptors() { setrlimit(RLIMIT_NOFILE, &before); }
  rlimit before{};
};

TEST_F(DataPath, APumpWithoutAPipeWaitsForOneAndLosesNothing) {
  const auto much = random_bytes(400'000, 1);
  for (int i = 0; i < 20; ++i) pairs.push_back(it.pair(server, 4096));  // more than pooled pipes
  std::vector<std::size_t> sent(pairs.size());
  const auto push_all = [&] {
    for (std::size_t i = 0; i < pairs.size(); ++i)
      sent[i] += pairs[i].second.push(std::string_view(much).substr(sent[i]));
  };
  std::size_t whole = 0;
  {
    const no_descriptors none;  // nor may the sanitizer want one: no claim in here
    for (int i = 0; i < 20; ++i) push_all(), it.run_for(10ms);  // until the pipes are full
    for (auto& [client, upstream] : pairs)
      it.until([&, &reader = client] {
        push_all();
        reader.pull();
        return reader.received.size() == much.size();
      });
    for (auto& [client, upstream] : pairs) whole += client.received == much ? 1 : 0;
  }
  EXPECT_EQ(whole, pairs.size());
  EXPECT_THAT(it.problems, ElementsAre("out of file descriptors, a connection waits for a pipe"));
}

struct report {
  long problems;
  long refusals;
  std::chrono::milliseconds::rep cpu;
  std::size_t connections;
};

// The proxy in a process of its own that may have 64 descriptors; the test is clients and server.
struct OutOfDescriptors : testing::Test {
  OutOfDescriptors() {
    EXPECT_EQ(pipe(to_child_), 0);
    EXPECT_EQ(pipe(from_child_), 0);
    child_ = fork();
    if (child_ == 0) run_proxy();
    std::uint16_t port = 0;
    EXPECT_EQ(read(from_child_[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    proxy = net::endpoint(boost::asio::ip::address_v4::loopback(), port);
  }
  ~OutOfDescriptors() override {
    for (const int fd : {to_child_[0], to_child_[1], from_child_[0], from_child_[1]}) close(fd);
    waitpid(child_, nullptr, 0);
  }

  // Serves until a byte comes, then reports.
  [[noreturn]] void run_proxy() {
    const rlimit limit{64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    lane it;
    it.use({server.address()});
    const std::uint16_t port = it.listen().port();
    bool failed = write(from_child_[1], &port, sizeof port) != sizeof port;
    pollfd stop{.fd = to_child_[0], .events = POLLIN, .revents = 0};
    while (!failed && poll(&stop, 1, 0) == 0) it.loop.turn(20ms);
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto cpu = std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                     std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    const report numbers{
        static_cast<long>(it.problems.size()), static_cast<long>(it.rejections.size()),
        std::chrono::duration_cast<std::chrono::milliseconds>(cpu).count(), it.path.connections()};
    failed = failed || write(from_child_[1], &numbers, sizeof numbers) != sizeof numbers;
    _exit(failed ? 1 : 0);
  }
  report stop_proxy() {
    report result{};
    EXPECT_EQ(write(to_child_[1], "x", 1), 1);
    EXPECT_EQ(read(from_child_[0], &result, sizeof result), static_cast<ssize_t>(sizeof result));
    return result;
  }
  // Accepts at the server what the proxy dials.
  void accept_for(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      while (auto next = server.accept()) served.push_back(std::move(*next));
      std::this_thread::sleep_for(2ms);
    }
  }

  test_listener server{"127.0.0.1", 4096};
  net::endpoint proxy;
  std::deque<peer> clients;
  std::deque<peer> served;
  pid_t child_ = 0;
  int to_child_[2] = {-1, -1};
  int from_child_[2] = {-1, -1};
};

TEST_F(OutOfDescriptors, WhoIsThereStaysAndWhoWaitsIsServedWithinASecond) {
  for (int i = 0; i < 200; ++i) clients.push_back(test::connect_to(proxy));
  accept_for(3s);
  const auto kept = served.size();
  EXPECT_GE(kept, 8u);
  EXPECT_LE(kept, 24u) << "descriptors are kept free for probes";
  for (std::size_t i = 0; i < kept; ++i) {  // in order: the proxy accepts and dials so
    clients[i].push("still served");
    EXPECT_TRUE(test::poll_until([&] { return served[i].pull(), !served[i].received.empty(); }));
  }
  for (std::size_t i = 0; i < kept; ++i) clients[i].reset();
  accept_for(1s);
  EXPECT_GE(served.size(), 2 * kept - 2);
  for (auto& each : clients) EXPECT_FALSE(each.pull() && each.saw_reset) << "waiting, not refused";
  const auto numbers = stop_proxy();
  EXPECT_GE(numbers.refusals, 1);
  EXPECT_LE(numbers.problems, 2) << "one line in ten seconds";
  EXPECT_LT(numbers.cpu, 400) << "of four seconds";
}

}  // namespace
}  // namespace kubelane
