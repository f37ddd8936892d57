// What a running kubelane tells people: everywhere the same, in every state of an API server.

#include "serving.hpp"
#include "tests/support/poll_until.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <functional>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

/// A state that cp2 (or `name`) is in.
struct claim {
  std::string name;
  std::string state;
  std::string cause;  ///< is part of what is said
  std::string membership = "configured";
};

json::object find_upstream(const json::value& status, const std::string& name) {
  for (const auto& one : status.at("upstreams").as_array())
    if (one.at("name").as_string() == name) return one.as_object();
  return {};
}

std::string text_in(const json::object& from, const char* key) {
  return from.empty() ? "" : std::string(from.at(key).as_string());
}

bool holds(const json::value& status, const claim& wanted) {
  const auto one = find_upstream(status, wanted.name);
  return text_in(one, "state") == wanted.state && text_in(one, "membership") == wanted.membership &&
         text_in(one, "cause").find(wanted.cause) != std::string::npos;
}

/// What the metrics say about each upstream and the whole, where it is not what `status` says.
std::string difference(const json::value& status, int admin) {
  std::string text;
  const auto series = [&](const std::string& name, double expected) {
    const auto found = metric(admin, name);
    if (!found || *found != expected)
      text += name + " is " + (found ? std::to_string(*found) : "not there") + ", not " +
              std::to_string(expected) + '\n';
  };
  for (const auto& one : status.at("upstreams").as_array()) {
    const std::string name(one.at("name").as_string());
    for (const char* state : {"unknown", "ready", "slow", "shutting_down", "not_ready", "refused",
                              "hung", "dead", "impostor", "unresolved"})
      series(
          "kubelane_upstream_state{state=\"" + std::string(state) + "\",upstream=\"" + name + "\"}",
          one.at("state").as_string() == state ? 1 : 0);
    series("kubelane_upstream_connections{upstream=\"" + name + "\"}",
           one.at("connections").to_number<double>());
  }
  series("kubelane_panic_mode", status.at("panic").as_bool() ? 1 : 0);
  for (const char* kind : {"members", "majority", "ready", "spare"})
    series("kubelane_control_plane_quorum{kind=\"" + std::string(kind) + "\"}",
           status.at("quorum").at(kind).to_number<double>());
  return text;
}

/// Waits for the state; then `kubelane status --json`, its table and /metrics have to say the same.
void expect_everywhere(serving& it, const claim& wanted) {
  const auto asked = [&] { return json::parse(get(it.admin, "/status").body); };
  ASSERT_TRUE(poll_until([&] { return holds(asked(), wanted); }, 20s))
      << wanted.state << '\n'
      << get(it.admin, "/status").body << it.run.error();
  std::string last;
  const bool agreed = poll_until(
      [&] {
        binary command({"status", "--json", "--admin", "127.0.0.1:" + std::to_string(it.admin)});
        const int exit_status = command.wait();
        const auto status = json::parse(command.out());
        last = difference(status, it.admin);
        if (!holds(status, wanted)) last += "the command says something else\n" + command.out();
        if (exit_status != (status.at("ready").as_bool() ? 0 : 1)) last += "exit status\n";
        return last.empty();
      },
      5s);
  EXPECT_TRUE(agreed) << wanted.state << '\n' << last;
  binary table({"status", "--admin", "127.0.0.1:" + std::to_string(it.admin)});
  table.wait();
  EXPECT_NE(table.out().find(wanted.state), std::string::npos) << table.out();
}

/// A state of cp2, and what brings it about.
struct fault {
  claim becomes;
  std::function<void(fake_apiserver&)> strike;
};

void PrintTo(const fault& one, std::ostream* out) {
  *out << one.becomes.state;
}

class EveryState : public testing::TestWithParam<fault> {};

TEST_P(EveryState, IsTheSameInTheCommandAndInTheMetrics) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  GetParam().strike(*it.servers[1]);
  expect_everywhere(it, GetParam().becomes);
}

void show_other_certificate(fake_apiserver& server) {
  static const demo::authority other("another cluster");
  server.use(server_tls(other, {.common_name = "kube-apiserver",
                                .names = {"kubernetes.default.svc", "127.0.0.1"},
                                .key = demo::key_kind::p256}));
  server.drop_connections(demo::first_act::close);
}

INSTANTIATE_TEST_SUITE_P(
    Status, EveryState,
    testing::Values(
        fault{{"cp2", "ready", ""}, [](auto&) {}},
        fault{{"cp2", "ready", "401"},
              [](auto& server) {
                server.answer("/readyz", {401, "Unauthorized"});
              }},
        fault{{"cp2", "slow", ""},
              [](auto& server) {
                server.answer("/readyz", {200, "ok", 3s});
              }},
        fault{{"cp2", "shutting_down", "shutdown"},
              [](auto& server) { server.answer("/readyz", demo::failing_readyz({"shutdown"})); }},
        fault{{"cp2", "not_ready", "etcd"},
              [](auto& server) { server.answer("/readyz", demo::failing_readyz({"etcd"})); }},
        fault{{"cp2", "refused", "refused"}, [](auto& server) { server.kill(); }},
        fault{{"cp2", "hung", "nothing heard"}, [](auto& server) { server.freeze(); }},
        fault{{"cp2", "impostor", "certificate"}, show_other_certificate}),
    [](const auto& one) {
      return one.param.becomes.state + (one.param.becomes.cause == "401" ? "_unauthorized" : "");
    });

// A name without an address; an address that this node has no way to; no authority to verify with.
TEST(Status, WhatIsNoServersFaultIsTheSameEverywhereToo) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto text = it.configuration();
  const auto at = text.find("health:");
  text.insert(at,
              "  - {name: cp4, address: api.nowhere.invalid}\n"
              "  - {name: cp5, address: \"[2001:db8::15]\"}\n");
  it.write(text);
  it.run.signal(SIGHUP);
  expect_everywhere(it, {"cp4", "unresolved", "no address"});
  expect_everywhere(it, {"cp5", "unknown", ""});
}

TEST(Status, AServerThatCannotBeVerifiedYetIsReadyWithACause) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto text = it.configuration();
  const auto ca = it.folder / "ca.crt";
  text.replace(text.find(ca), ca.size(), it.folder / "not-yet.crt");
  it.write(text);
  it.run.signal(SIGHUP);
  expect_everywhere(it, {"cp2", "ready", "CA"});
}

TEST(Status, ARemovedServerIsLeavingEverywhereAndNoMemberAnyMore) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  const auto held = it.hold(3);
  auto text = it.configuration();
  const auto begin = text.find("  - {name: cp2");
  text.erase(begin, text.find('\n', begin) + 1 - begin);
  it.write(text);
  it.run.signal(SIGHUP);
  expect_everywhere(it, {"cp2", "ready", "", "leaving"});
  const auto status = json::parse(get(it.admin, "/status").body);
  EXPECT_EQ(status.at("quorum").at("members").to_number<int>(), 2);
}

TEST(Status, HasThePagesHistoryAndCertificates) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  const auto status = json::parse(get(it.admin, "/status").body);
  for (const auto& one : status.at("upstreams").as_array()) {
    EXPECT_TRUE(one.at("certificate_expiry").is_string()) << one;
    EXPECT_FALSE(one.at("probe_history").as_array().empty()) << one;
  }
  EXPECT_EQ(status.at("pid").to_number<int>(), it.run.pid());
  EXPECT_EQ(status.at("headline").at(0).at("text").as_string(), "All 3 API servers are ready.");
}

}  // namespace
}  // namespace kubelane::test
