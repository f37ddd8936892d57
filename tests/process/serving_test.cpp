// A running kubelane: clients are served whatever happens to servers, files and signals.

#include "serving.hpp"

#include "line_client.hpp"
#include "tests/support/poll_until.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST(Serving, AClientIsCarriedToAReadyServerAndIdleConnectionsAreSpreadEvenly) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  std::map<std::string, int> count;
  const auto held = it.hold(30);
  for (const auto& [client, name] : held) ++count[name];
  EXPECT_EQ(count, (std::map<std::string, int>{{"cp1", 10}, {"cp2", 10}, {"cp3", 10}}));
}

TEST(Serving, AKilledServerCostsNoNewConnectionAndIsKnownAtOnce) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.servers[0]->kill();
  for (int i = 0; i < 50; ++i) {
    line_client client(it.port);
    const auto name = client.ask("name");
    ASSERT_TRUE(name) << "client " << i << '\n' << it.run.error();
    EXPECT_NE(*name, "cp1");
  }
  EXPECT_TRUE(becomes(it.admin, "cp1", "refused"));
  EXPECT_TRUE(it.run.says("upstream refused upstream=cp1")) << it.run.error();
}

TEST(Serving, AFrozenServersConnectionsAreResetAndItsReturnIsSeen) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  it.servers[1]->freeze();
  for (auto& [client, name] : held)
    if (name == "cp2") {
      EXPECT_EQ(client.wait_for_end(10s), line_client::state::reset) << it.run.error();
    } else {
      EXPECT_TRUE(client.ask("name"));
    }
  EXPECT_TRUE(becomes(it.admin, "cp2", "hung"));
  EXPECT_EQ(metric(it.admin, "kubelane_connections_reset_total{cause=\"hung\",upstream=\"cp2\"}"),
            2);
  it.servers[1]->thaw();
  EXPECT_TRUE(becomes(it.admin, "cp2", "ready")) << it.run.error();
}

TEST(Serving, AServerWithoutItsEtcdIsLeftAndTheFailedCheckIsNamed) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(3);
  it.servers[2]->answer("/readyz", demo::failing_readyz({"etcd"}));
  EXPECT_TRUE(it.run.says("upstream not_ready upstream=cp3 from=ready cause=etcd"))
      << it.run.error();
  for (auto& [client, name] : held) {
    if (name == "cp3")
      EXPECT_EQ(client.wait_for_end(12s), line_client::state::ended) << it.run.error();
    else
      EXPECT_TRUE(client.ask("name"));
  }
}

TEST(Serving, LivenessStaysWhileEveryServerIsDownAndReadinessFollows) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  for (const auto& server : it.servers) server->kill();
  EXPECT_TRUE(answers(it.admin, "/readyz", 503));
  EXPECT_EQ(get(it.admin, "/livez").status, 200);
  EXPECT_EQ(get(it.admin, "/healthz").status, 200);
  EXPECT_EQ(metric(it.admin, "kubelane_panic_mode"), 1);
  line_client client(it.port);
  EXPECT_EQ(client.wait_for_end(5s), line_client::state::reset);
  for (const auto& server : it.servers) server->listen();
  EXPECT_TRUE(answers(it.admin, "/readyz", 200)) << it.run.error();
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

class BrokenReload : public testing::TestWithParam<std::pair<const char*, std::string>> {};

TEST_P(BrokenReload, IsRefusedWithItsReasonAndNobodyIsLost) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(30);
  it.write(GetParam().second);
  it.run.signal(SIGHUP);
  ASSERT_TRUE(it.run.says("configuration rejected")) << it.run.error();
  EXPECT_TRUE(it.run.says(it.path + ":")) << it.run.error();
  EXPECT_GE(it.reloads("rejected"), 1);
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name);
  EXPECT_TRUE(line_client(it.port).ask("name"));
  binary check({"check", "--config", it.path});
  EXPECT_EQ(check.wait(), 2);
}

const std::string good_start = "version: 1\nupstreams:\n  - {name: a, address: 10.0.0.1}\n";

INSTANTIATE_TEST_SUITE_P(
    All, BrokenReload,
    testing::Values(
        std::pair{"Empty", std::string()},
        std::pair{"CutInTheMiddle", std::string("version: 1\nupstreams: [{name: a, ad")},
        std::pair{"NoUpstreams", std::string("version: 1\nupstreams: []\n")},
        std::pair{"BadPort", std::string("upstreams: [{address: \"10.0.0.1:70000\"}]\n")},
        std::pair{"UnknownKey", good_start + "listn: 127.0.0.1:6443\n"},
        std::pair{"NotUtf8", good_start + "zone: \"\xff\xfe\"\n"},
        std::pair{"DiscoveryIsNotSupportedYet", good_start + "discovery: {}\n"}),
    [](const auto& broken) { return broken.param.first; });

TEST(Reload, AMissingFileIsRefused) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  fs::remove(it.path);
  it.run.signal(SIGHUP);
  EXPECT_TRUE(it.run.says("configuration rejected")) << it.run.error();
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(Reload, ARemovedServerGetsNothingNewAndIsLeftTheOthersStay) {
  serving it("drain: {removed: 1s}\n");
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  auto text = it.configuration("drain: {removed: 1s}\n");
  const auto from = text.find("  - {name: cp1");
  text.erase(from, text.find('\n', from) + 1 - from);
  it.write(text);
  it.run.signal(SIGHUP);
  ASSERT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_NE(line_client(it.port).ask("name"), "cp1");
  for (auto& [client, name] : held) {
    if (name == "cp1")
      EXPECT_EQ(client.wait_for_end(10s), line_client::state::ended) << it.run.error();
    else
      EXPECT_EQ(client.ask("name"), name);
  }
  const auto probes = it.servers[0]->counters().probes;
  EXPECT_TRUE(poll_until([&] { return it.servers[1]->counters().probes > probes + 3; }, 20s));
  EXPECT_EQ(it.servers[0]->counters().probes, probes) << "a removed server is not asked";
}

TEST(Reload, NamesWithoutAnAnswerLeaveClientsTheServersOfBefore) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  auto text = it.configuration();
  for (const auto& server : it.servers) {
    const auto address = net::to_string(server->address());
    text.replace(text.find(address), address.rfind(':'), server->name() + ".invalid");
  }
  it.write(text);
  it.run.signal(SIGHUP);
  ASSERT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; })) << it.run.error();
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(line_client(it.port).ask("name")) << it.run.error();
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name);
}

TEST(Reload, TheSameServersInAnotherOrderChangeNothing) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  const auto accepted = it.servers[0]->counters().accepted;
  std::swap(it.servers[0], it.servers[2]);
  it.write(it.configuration());
  it.run.signal(SIGHUP);
  ASSERT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; }));
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name);
  EXPECT_EQ(it.servers[2]->counters().accepted, accepted) << "nobody dialled or probed anew";
}

TEST(Reload, AFileReplacedByRenameIsTakenOnByItself) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  it.write(it.configuration("zone: b\n"));
  EXPECT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; }, 20s)) << it.run.error();
}

TEST(Reload, AFileWrittenInPlaceIsTakenOnByItself) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  std::ofstream(it.path) << it.configuration("zone: b\n");
  EXPECT_TRUE(poll_until([&] { return it.reloads("accepted") == 1; }, 20s)) << it.run.error();
}

TEST(Reload, ASwitchedSymbolicLinkIsTakenOnByItself) {
  world it;
  // As Kubernetes mounts a ConfigMap: config.yaml -> ..data/config.yaml, ..data -> a directory.
  for (const char* version : {"v1", "v2"}) {
    fs::create_directory(it.folder / version);
    std::ofstream(it.folder / version + "/config.yaml")
        << it.configuration(std::string("zone: ") + version + '\n');
  }
  fs::create_directory_symlink("v1", it.folder / "..data");
  const auto path = it.folder / "linked.yaml";
  fs::create_symlink("..data/config.yaml", path);
  binary run({"run", "--config", path});
  ASSERT_TRUE(answers(it.admin, "/readyz", 200)) << run.error();
  fs::create_directory_symlink("v2", it.folder / "..data_tmp");
  fs::rename(it.folder / "..data_tmp", it.folder / "..data");
  EXPECT_TRUE(run.says("configuration taken on")) << run.error();
}

TEST(Reload, AListenerThatWouldChangeIsNamedAndKept) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto text = it.configuration();
  const auto old_port = std::to_string(it.port);
  text.replace(text.find(old_port), old_port.size(), std::to_string(free_port()));
  it.write(text);
  it.run.signal(SIGHUP);
  EXPECT_TRUE(it.run.says("takes effect at the next restart")) << it.run.error();
  EXPECT_TRUE(line_client(it.port).ask("name"));
}

TEST(Stop, TerminationLetsConnectionsEndInOrderAndExitsZero) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(9);
  it.run.signal(SIGTERM);
  for (auto& [client, name] : held) EXPECT_EQ(client.wait_for_end(15s), line_client::state::ended);
  EXPECT_EQ(it.run.wait(), 0) << it.run.error();
}

TEST(Stop, ASecondTerminationGoesAtOnce) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(30);
  it.run.signal(SIGTERM);
  ASSERT_TRUE(it.run.says("stopping"));
  it.run.signal(SIGTERM);
  EXPECT_EQ(it.run.wait(), 0) << it.run.error();
}

TEST(Stop, NoProbeEndsInAHandshakeErrorOnTheServers) {
  serving it;
  ASSERT_TRUE(it.ready) << it.run.error();
  ASSERT_TRUE(poll_until([&] { return it.servers[0]->counters().probes >= 3; }, 20s));
  it.run.signal(SIGTERM);
  EXPECT_EQ(it.run.wait(), 0);
  for (const auto& server : it.servers) {
    EXPECT_TRUE(poll_until([&] { return server->counters().open == 0; }));
    EXPECT_EQ(server->counters().failed_handshakes, 0U);
    EXPECT_EQ(server->counters().cut, 0U) << "closed without close_notify";
  }
}

TEST(Observe, CountsWhatItWouldResetAndClosesNothing) {
  serving it("failover: {mode: observe}\n");
  ASSERT_TRUE(it.ready) << it.run.error();
  auto held = it.hold(6);
  it.servers[1]->freeze();
  ASSERT_TRUE(it.run.says("would take connections away", 20s)) << it.run.error();
  EXPECT_EQ(metric(it.admin, "kubelane_would_reset_total{cause=\"hung\",upstream=\"cp2\"}"), 2);
  for (auto& [client, name] : held) EXPECT_EQ(client.look(), line_client::state::open);
  it.servers[1]->thaw();
  for (auto& [client, name] : held) EXPECT_EQ(client.ask("name"), name);
}

}  // namespace
}  // namespace kubelane::test
