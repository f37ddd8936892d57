// Who may ask for metrics, over real sockets.

#include "serving.hpp"
#include "tests/support/poll_until.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <string>

namespace kubelane::test {
namespace {

sockaddr_in at(const char* address, int port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, address, &result.sin_addr);
  return result;
}

/// Asks 127.0.0.1:`port` for `path` from that address of the loopback; the first line of the
/// answer, or nothing if there is none.
std::string ask_from(const char* source, int port, const std::string& path) {
  const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval limit{5, 0};
  ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const auto from = at(source, 0);
  const auto to = at("127.0.0.1", port);
  std::string answer;
  if (::bind(client, reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
      ::connect(client, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    const auto request = "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    ::send(client, request.data(), request.size(), MSG_NOSIGNAL);
    std::array<char, 4096> piece;
    for (ssize_t count; (count = ::recv(client, piece.data(), piece.size(), 0)) > 0;)
      answer.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(client);
  return answer.substr(0, answer.find('\r'));
}

std::string metrics_for(int port, const std::string& ranges) {
  return "metrics: {listen: \"127.0.0.1:" + std::to_string(port) + "\", allow: " + ranges + "}\n";
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

constexpr auto good = "HTTP/1.1 200 OK";

TEST(MetricsListener, AnswersThoseInItsListAndClosesOnOthersAtOnce) {
  const int port = free_port();
  serving it(metrics_for(port, "[127.0.0.8/30]"));
  ASSERT_TRUE(it.ready) << it.run.error();
  EXPECT_EQ(ask_from("127.0.0.9", port, "/metrics"), good);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask_from("127.0.0.1", port, "/metrics"), "");
  EXPECT_EQ(ask_from("127.0.0.12", port, "/metrics"), "");
  EXPECT_TRUE(it.run.says("metrics refused: the client is not in metrics.allow client=127.0.0.12"));
  EXPECT_EQ(count_of(it.run.error(), "metrics refused"), 2U) << "each client is said once\n"
                                                             << it.run.error();
  EXPECT_EQ(get(it.admin, "/metrics").status, 200) << "the admin port is not meant";
}

TEST(MetricsListener, ServesMetricsAlone) {
  const int port = free_port();
  serving it(metrics_for(port, "[]"));
  ASSERT_TRUE(it.ready) << it.run.error();
  EXPECT_EQ(ask_from("127.0.0.1", port, "/metrics"), good);
  for (const char* path : {"/", "/status", "/readyz", "/livez"})
    EXPECT_EQ(ask_from("127.0.0.1", port, path), "HTTP/1.1 404 Not Found") << path;
}

TEST(MetricsListener, TakesANewListOnAtOnce) {
  const int port = free_port();
  serving it(metrics_for(port, "[127.0.0.9]"));
  ASSERT_TRUE(it.ready) << it.run.error();
  EXPECT_EQ(ask_from("127.0.0.1", port, "/metrics"), "");
  it.write(it.configuration(metrics_for(port, "[127.0.0.1]")));
  it.run.signal(SIGHUP);
  EXPECT_TRUE(it.run.says("metrics.allow: [127.0.0.9/32] -> [127.0.0.1/32]")) << it.run.error();
  EXPECT_EQ(ask_from("127.0.0.1", port, "/metrics"), good);
  EXPECT_EQ(ask_from("127.0.0.9", port, "/metrics"), "");
}

TEST(MetricsListener, HundredsOfRefusedClientsTakeNobodysPlace) {
  const int port = free_port();
  serving it(metrics_for(port, "[127.0.0.9]"));
  ASSERT_TRUE(it.ready) << it.run.error();
  for (int i = 0; i < 300; ++i) EXPECT_EQ(ask_from("127.0.0.1", port, "/metrics"), "");
  EXPECT_EQ(ask_from("127.0.0.9", port, "/metrics"), good);
  EXPECT_EQ(get(it.admin, "/livez").status, 200);
}

}  // namespace
}  // namespace kubelane::test
