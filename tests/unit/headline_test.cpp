#include "proxy/headline.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;
using health::state;

upstream_status upstream(const char* name, state is, const char* cause = "") {
  upstream_status one{};
  one.name = name;
  one.state = is;
  one.cause = cause;
  one.since = time_point{} + 5s;
  one.tier = 1;
  return one;
}

pool_status pool_of(std::vector<upstream_status> upstreams) {
  pool_status status{};
  status.upstreams = std::move(upstreams);
  return status;
}

std::vector<std::string> texts(const pool_status& status, circumstances beside = {}) {
  beside.quorum = quorum_of(status);
  std::vector<std::string> result;
  for (const auto& one : headline(status, beside)) result.push_back(one.text);
  return result;
}

const pool_status all_ready = pool_of(
    {upstream("cp1", state::ready), upstream("cp2", state::ready), upstream("cp3", state::ready)});

TEST(Headline, SaysThatAllAreReadyAndHowManyMayFail) {
  EXPECT_EQ(texts(all_ready),
            (std::vector<std::string>{"All 3 API servers are ready.",
                                      "etcd, as this node sees it: 3 of 3 members ready: quorum "
                                      "survives one failure."}));
  for (const auto& one : headline(all_ready, {quorum_of(all_ready), false, false, false, {}}))
    EXPECT_EQ(one.how, tone::good) << one.text;
}

TEST(Headline, SaysWhichServerIsDownWhyAndThatNoOtherMayFail) {
  auto status = all_ready;
  status.upstreams[1] = upstream("cp2", state::dead, "request not acknowledged");
  EXPECT_EQ(texts(status),
            (std::vector<std::string>{
                "2 of 3 API servers are ready.", "cp2 is down: no answer from its host (dead)",
                "etcd, as this node sees it: 2 of 3 members ready: one more failure "
                "loses quorum; the cluster can lose no other."}));
  const auto sentences = headline(status, {quorum_of(status), false, false, false, {}});
  EXPECT_EQ(sentences[1].how, tone::bad);
  EXPECT_EQ(sentences[1].since, time_point{} + 5s);
}

TEST(Headline, EachStateButReadyHasASentenceThatNamesTheServer) {
  for (int i = 0; i <= static_cast<int>(state::unresolved); ++i) {
    const auto is = static_cast<state>(i);
    auto status = all_ready;
    status.upstreams[1] = upstream("cp2", is);
    const auto said = texts(status);
    const bool named = std::any_of(said.begin(), said.end(), [](const std::string& text) {
      return text.rfind("cp2 is ", 0) == 0;
    });
    EXPECT_EQ(named, is != state::ready) << health::to_string(is);
    EXPECT_STRNE(meaning(status.upstreams[1]), "") << health::to_string(is);
  }
}

TEST(Headline, AReadyServerWithACauseIsMentioned) {
  auto status = all_ready;
  status.upstreams[0].cause = "401 Unauthorized";
  EXPECT_EQ(texts(status)[1], "cp1 is ready, with a reservation: 401 Unauthorized");
  EXPECT_STRNE(advice(status.upstreams[0]), "");
}

TEST(Headline, ALostQuorumIsSaid) {
  auto status = all_ready;
  status.upstreams[1].state = status.upstreams[2].state = state::refused;
  EXPECT_EQ(texts(status).front(), "1 of 3 API servers is ready.");
  EXPECT_EQ(texts(status).back(),
            "etcd, as this node sees it: 1 of 3 members ready: quorum is lost, one short of a "
            "majority; the cluster cannot be changed.");
}

TEST(Headline, WhatWasNotAskedYetIsNoLoss) {
  const auto status = pool_of({upstream("cp1", state::unknown), upstream("cp2", state::unknown),
                               upstream("cp3", state::ready)});
  EXPECT_EQ(texts(status).back(), "etcd: not known yet.");
}

TEST(Headline, PanicIsSaid) {
  auto status = all_ready;
  for (auto& one : status.upstreams) one.state = state::dead;
  status.panic = true;
  EXPECT_EQ(texts(status).front(),
            "None of 3 API servers looks usable: every one is tried (panic mode).");
}

TEST(Headline, ExternalEtcdIsNotJudged) {
  const auto said = headline(all_ready, {});
  EXPECT_EQ(said.back().text, "etcd is external: kubelane does not see its members.");
}

TEST(Headline, ALeavingServerIsNoMemberAndIsMentioned) {
  auto status = all_ready;
  status.upstreams[2].removed = true;
  status.upstreams[2].connections = 1;
  const auto said = texts(status);
  EXPECT_EQ(said[0], "All 2 API servers are ready.");
  EXPECT_EQ(said[1], "cp3 is leaving: it is no longer wanted, and has 1 connection left.");
}

TEST(Headline, WhatIsOutOfTheOrdinaryIsSaid) {
  EXPECT_EQ(texts(all_ready, {std::nullopt, true, true, true, "port"}).size(), 6U);
}

TEST(Headline, OneServerIsNoPlural) {
  EXPECT_EQ(texts(pool_of({upstream("cp1", state::ready)})),
            (std::vector<std::string>{"The API server is ready.",
                                      "etcd, as this node sees it: 1 of 1 members ready: one "
                                      "failure loses quorum; the cluster can lose no other."}));
}

}  // namespace
}  // namespace kubelane::proxy
