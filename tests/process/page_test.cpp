// The status page as it is served; tests/e2e/page looks at it in a browser.

#include "line_client.hpp"
#include "serving.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <array>

namespace kubelane::test {
namespace {

/// The whole answer, head and body.
std::string ask(int admin, const std::string& method, const std::string& path) {
  line_client client(admin);
  client.send(method + ' ' + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::string answer;
  while (const auto line = client.read_line()) answer += *line + '\n';
  return answer;
}

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const auto begin = text.find(open);
  if (begin == std::string::npos) return {};
  const auto at = begin + open.size();
  return text.substr(at, text.find(close, at) - at);
}

std::string sha256(const std::string& text) {
  std::array<unsigned char, 32> digest{};
  EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::array<unsigned char, 45> encoded{};
  EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest.size()));
  return "'sha256-" + std::string(reinterpret_cast<const char*>(encoded.data())) + "'";
}

struct Page : testing::Test {
  void SetUp() override { ASSERT_TRUE(it.ready) << it.run.error(); }
  serving it;
};

TEST_F(Page, ItsPolicyNamesItsOwnScriptAndStyleAndLetsNothingElseRun) {
  const auto head = ask(it.admin, "GET", "/");
  const auto html = get(it.admin, "/").body;
  const auto policy = between(head, "Content-Security-Policy: ", "\r\n");
  EXPECT_EQ(policy.rfind("default-src 'none'; script-src ", 0), 0U) << policy;
  EXPECT_NE(policy.find("script-src " + sha256(between(html, "<script>", "</script>")) + ";"),
            std::string::npos)
      << policy;
  EXPECT_NE(policy.find("style-src " + sha256(between(html, "<style>", "</style>")) + ";"),
            std::string::npos)
      << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
}

TEST_F(Page, NamesNothingOnAnotherServer) {
  const auto html = get(it.admin, "/").body;
  EXPECT_NE(html.find("<title>kubelane</title>"), std::string::npos);
  for (auto at = html.find("://"); at != std::string::npos; at = html.find("://", at + 1))
    EXPECT_EQ(html.substr(at - 4, 26), "http://www.w3.org/2000/svg");
}

TEST_F(Page, HeadHasTheHeadAlone) {
  const auto answer = ask(it.admin, "HEAD", "/");
  EXPECT_EQ(answer.rfind("HTTP/1.1 200 OK", 0), 0U) << answer;
  EXPECT_NE(answer.find("Content-Length: " + std::to_string(get(it.admin, "/").body.size())),
            std::string::npos)
      << answer;
  EXPECT_EQ(answer.find("<html"), std::string::npos);
}

TEST_F(Page, OtherMethodsAndPathsAreRefused) {
  const auto post = ask(it.admin, "POST", "/");
  EXPECT_EQ(post.rfind("HTTP/1.1 405", 0), 0U) << post;
  EXPECT_NE(post.find("Allow: GET, HEAD"), std::string::npos) << post;
  for (const char* path : {"/nothing", "/index.html", "//", "/status/"}) {
    const auto answer = ask(it.admin, "GET", path);
    EXPECT_EQ(answer.rfind("HTTP/1.1 404", 0), 0U) << answer;
    EXPECT_NE(answer.find("Content-Security-Policy: default-src 'none'\r\n"), std::string::npos)
        << answer;
  }
}

}  // namespace
}  // namespace kubelane::test
