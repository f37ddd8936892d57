#include "proxy/commands/status_table.hpp"
#include "proxy/status_json.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

pool_status three_upstreams() {
  pool_status status{};
  const auto add = [&](const char* name, health::state state, const char* cause) {
    upstream_status one{};
    one.id = static_cast<upstream_id>(status.upstreams.size());
    one.name = name;
    one.address = net::parse_endpoint("10.0.0.1", 6443);
    one.state = state;
    one.cause = cause;
    one.since = time_point{} + 5s;
    one.connections = 2;
    one.tier = 1;
    status.upstreams.push_back(one);
  };
  add("cp1", health::state::ready, "");
  add("cp2", health::state::not_ready, "etcd");
  add("cp3", health::state::ready, "");
  status.upstreams[0].probe = std::chrono::microseconds(1500);
  return status;
}

status_document document_of(const std::deque<state_change>& events) {
  status_document document;
  document.version = "9.9";
  document.pool = three_upstreams();
  document.ready = true;
  document.beside.quorum = quorum_of(document.pool);
  document.connections = 7;
  document.events = &events;
  document.steady_now = time_point{} + 65s;
  document.unix_now_ms = 1'700'000'060'000;
  return document;
}

TEST(StatusJson, HasTheDocumentedShape) {
  const std::deque<state_change> events = {
      {1'700'000'000'123, "cp2", health::state::ready, health::state::not_ready, "etcd"}};
  const auto parsed = boost::json::parse(to_json(document_of(events)));
  EXPECT_EQ(parsed.at("version").as_string(), "9.9");
  EXPECT_TRUE(parsed.at("ready").as_bool());
  EXPECT_FALSE(parsed.at("panic").as_bool());
  EXPECT_EQ(parsed.at("connections").to_number<int>(), 7);
  const auto& first = parsed.at("upstreams").at(0);
  EXPECT_EQ(first.at("name").as_string(), "cp1");
  EXPECT_EQ(first.at("address").as_string(), "10.0.0.1:6443");
  EXPECT_EQ(first.at("state").as_string(), "ready");
  EXPECT_EQ(first.at("since").as_string(), "2023-11-14T22:13:20.000Z");
  EXPECT_DOUBLE_EQ(first.at("probe_ms").as_double(), 1.5);
  EXPECT_TRUE(parsed.at("upstreams").at(1).at("probe_ms").is_null());
  const auto& event = parsed.at("events").at(0);
  EXPECT_EQ(event.at("at").as_string(), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(event.at("to").as_string(), "not_ready");
  EXPECT_EQ(parsed.at("quorum").at("verdict").as_string(),
            "2 of 3 ready: one more failure loses quorum");
}

TEST(StatusJson, HasWhatThePageShowsBesides) {
  const std::deque<state_change> events;
  notes_by_upstream notes;
  notes[upstream_id{0}].certificate_expiry_ms = 1'800'000'000'000;
  notes[upstream_id{0}].probes.add({1'700'000'000'000, 1500});
  notes[upstream_id{0}].probes.add({1'700'000'001'000, std::nullopt});
  auto document = document_of(events);
  document.notes = &notes;
  document.beside.fallback = true;
  const auto parsed = boost::json::parse(to_json(document));
  EXPECT_EQ(parsed.at("now").as_string(), "2023-11-14T22:14:20.000Z");
  EXPECT_TRUE(parsed.at("config_fallback").as_bool());
  EXPECT_FALSE(parsed.at("observe").as_bool());
  const auto& first = parsed.at("upstreams").at(0);
  EXPECT_EQ(first.at("certificate_expiry").as_string(), "2027-01-15T08:00:00.000Z");
  EXPECT_EQ(boost::json::serialize(first.at("probe_history")),
            "[[1700000000000,1500],[1700000001000,null]]");
  const auto& second = parsed.at("upstreams").at(1);
  EXPECT_TRUE(second.at("certificate_expiry").is_null());
  EXPECT_EQ(second.at("means").as_string(), "answers that it is not ready");
  const auto& sentence = parsed.at("headline").at(1);
  EXPECT_EQ(sentence.at("text").as_string(), "cp2 is not ready: etcd");
  EXPECT_EQ(sentence.at("tone").as_string(), "bad");
  EXPECT_EQ(sentence.at("since").as_string(), "2023-11-14T22:13:20.000Z");
}

TEST(StatusJson, HasTheLastHundredEvents) {
  std::deque<state_change> events;
  for (int i = 0; i < 150; ++i)
    events.push_back({i, "cp1", health::state::ready, health::state::slow, ""});
  const auto parsed = boost::json::parse(to_json(document_of(events)));
  const auto& shown = parsed.at("events").as_array();
  ASSERT_EQ(shown.size(), 100U);
  EXPECT_EQ(shown.back().at("at").as_string(), rfc3339(149));
}

TEST(StatusJson, QuorumCountsReadyOnesAndWhatMayStillFail) {
  const auto view = quorum_of(three_upstreams());
  EXPECT_EQ(view.members, 3);
  EXPECT_EQ(view.majority, 2);
  EXPECT_EQ(view.ready, 2);
  EXPECT_EQ(view.spare, 0);
}

TEST(StatusJson, ARemovedUpstreamIsNoMember) {
  auto status = three_upstreams();
  status.upstreams[2].removed = true;
  EXPECT_EQ(quorum_of(status).members, 2);
}

TEST(StatusJson, OneThatLeavesIsNoMember) {
  auto status = three_upstreams();
  status.upstreams[2].member = health::membership::leaving;
  EXPECT_EQ(quorum_of(status).members, 2);
}

TEST(StatusJson, ServersOfBeforeStandInForNamesThatWereNotAnswered) {
  auto status = three_upstreams();
  for (auto& one : status.upstreams) one.member = health::membership::leaving;
  for (const char* name : {"a.example", "b.example", "c.example"}) {
    upstream_status open{};
    open.name = name;
    open.state = health::state::unresolved;
    status.upstreams.push_back(open);
  }
  const auto view = quorum_of(status);
  EXPECT_EQ(view.members, 3);
  EXPECT_EQ(view.ready, 2);
}

TEST(Readiness, NamesEachUpstreamWithStateAndCause) {
  EXPECT_EQ(readiness_text(three_upstreams(), true),
            "[+]cp1 ready\n[-]cp2 not_ready: etcd\n[+]cp3 ready\nready\n");
}

TEST(StatusTable, ShowsEveryUpstreamTheQuorumAndTheLastChange) {
  const std::deque<state_change> events = {
      {1'700'000'000'123, "cp2", health::state::ready, health::state::not_ready, "etcd"}};
  const auto text = commands::status_table(to_json(document_of(events)), commands::colour::off);
  EXPECT_NE(text.find("kubelane 9.9: ready, 7 connections"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of 3 ready: one more failure loses quorum"), std::string::npos) << text;
  EXPECT_NE(text.find("cp2   10.0.0.1:6443  not_ready"), std::string::npos) << text;
  EXPECT_NE(text.find("2023-11-14 22:13:20"), std::string::npos) << text;
  EXPECT_NE(text.find("! cp2 is not ready: etcd, since 2023-11-14 22:13:20"), std::string::npos)
      << text;
  EXPECT_NE(text.find("cp2        =============================!"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(StatusTable, WhatAServerSaidCannotMoveTheCursor) {
  const std::deque<state_change> events;
  auto document = document_of(events);
  document.pool.upstreams[1].cause = "\x1b[2J";
  const auto text = commands::status_table(to_json(document), commands::colour::off);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("?[2J"), std::string::npos) << text;
}

TEST(StatusTable, PaintsStatesOnlyWhenAsked) {
  const std::deque<state_change> events;
  const auto text = commands::status_table(to_json(document_of(events)), commands::colour::on);
  EXPECT_NE(text.find("\x1b[31mnot_ready\x1b[0m"), std::string::npos) << text;
}

}  // namespace
}  // namespace kubelane::proxy
