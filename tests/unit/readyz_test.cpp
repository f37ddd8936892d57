#include "health/readyz.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// As kube-apiserver 1.31 writes it when its etcd is gone.
constexpr const char* etcd_gone =
    "[+]ping ok\n"
    "[+]log ok\n"
    "[-]etcd failed: reason withheld\n"
    "[-]etcd-readiness failed: reason withheld\n"
    "[+]informer-sync ok\n"
    "[+]poststarthook/start-apiserver-admission-initializer ok\n"
    "readyz check failed\n";

TEST(Readyz, NamesOfFailedChecksAreRead) {
  const auto found = parse_readyz(
      "[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: reason withheld\n"
      "[-]informer-sync failed: reason withheld\nreadyz check failed\n");
  EXPECT_THAT(found.names, ElementsAre("poststarthook/rbac/bootstrap-roles", "informer-sync"));
  EXPECT_FALSE(found.etcd);
  EXPECT_FALSE(found.shutdown);
}

TEST(Readyz, EtcdReadinessCountsAsEtcd) {
  const auto found = parse_readyz(etcd_gone);
  EXPECT_THAT(found.names, ElementsAre("etcd"));
  EXPECT_TRUE(found.etcd);
  EXPECT_EQ(found.in_words(), "etcd");
}

TEST(Readyz, ShutdownIsTold) {
  const auto found = parse_readyz("[+]ping ok\n[-]shutdown failed: reason withheld\n");
  EXPECT_TRUE(found.shutdown);
  EXPECT_EQ(found.in_words(), "shutdown");
}

TEST(Readyz, EachNameAppearsOnce) {
  EXPECT_EQ(parse_readyz("[-]a failed\n[-]b failed\n[-]a failed\n").in_words(), "a, b");
}

TEST(Readyz, LineEndsOfEveryKindAreRead) {
  EXPECT_EQ(parse_readyz("[-]a failed: x\r\n[-]b failed: y").in_words(), "a, b");
}

TEST(Readyz, ABodyWithoutFailedChecksHasNoNames) {
  for (const char* body : {"", "\n", "ok", "[+]etcd ok\n", "Service Unavailable", "[-]", "[-] ",
                           "<html>502 Bad Gateway</html>", "x[-]etcd failed"}) {
    const auto found = parse_readyz(body);
    EXPECT_THAT(found.names, IsEmpty()) << body;
    EXPECT_FALSE(found.etcd) << body;
    EXPECT_EQ(found.in_words(), "") << body;
  }
}

TEST(Readyz, ALineThatWasCutOffStillCounts) {
  EXPECT_TRUE(parse_readyz("[+]ping ok\n[-]etcd").etcd);
}

TEST(Readyz, HostileTextCannotBreakALogLine) {
  const auto found = parse_readyz("[-]a\x1b[31m\x01z failed\n[-]caf\xc3\xa9 failed\n");
  EXPECT_THAT(found.names, ElementsAre("a??31m?z", "caf??"));
}

TEST(Readyz, ManyAndLongNamesAreShortened) {
  std::string body;
  for (int i = 0; i < 1000; ++i) body += "[-]check" + std::to_string(i) + " failed\n";
  body += "[-]" + std::string(100'000, 'x') + " failed\n[-]shutdown failed\n";
  const auto found = parse_readyz(body);
  EXPECT_EQ(found.names.size(), 8u);
  EXPECT_TRUE(found.more);
  EXPECT_TRUE(found.shutdown) << "also beyond the eighth";
  EXPECT_THAT(found.in_words(), testing::EndsWith("check7 and more"));
  EXPECT_EQ(parse_readyz("[-]" + std::string(100'000, 'x') + " f").names.front().size(), 64u);
}

}  // namespace
}  // namespace kubelane::health
