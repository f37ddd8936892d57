// Connections outlive the process that carries them.

#include "line_client.hpp"
#include "service_manager.hpp"
#include "tests/support/poll_until.hpp"
#include "world.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

/// A kubelane under a service manager of the test's own.
struct kept_world : world {
  explicit kept_world(std::size_t store_size = 2048)
      : path(write(configuration())),
        manager({"run", "--config", path}, store_size, {"STATE_DIRECTORY=" + (folder / "")}) {
    manager.start();
    ready = manager.ready() && becomes(admin, "cp1", "ready") && becomes(admin, "cp2", "ready") &&
            becomes(admin, "cp3", "ready");
  }

  bool stores(double connections) {
    return poll_until([&] { return metric(admin, "kubelane_stored_connections") == connections; },
                      20s);
  }

  bool ready = false;
  std::string path;
  service_manager manager;
};

TEST(Keeping, AnIdleConnectionOutlivesARestartAndAKill) {
  kept_world it;
  ASSERT_TRUE(it.ready) << it.manager.run().error();
  line_client client(it.port);
  const auto name = client.ask("name");
  ASSERT_TRUE(name);
  ASSERT_TRUE(it.stores(1)) << it.manager.run().error();
  it.manager.restart();
  ASSERT_TRUE(it.manager.ready()) << it.manager.run().error();
  EXPECT_EQ(client.ask("name"), name) << it.manager.run().error();
  EXPECT_EQ(metric(it.admin, "kubelane_restored_connections_total"), 1);
  it.manager.kill();
  ASSERT_TRUE(it.manager.ready());
  EXPECT_EQ(client.ask("name"), name) << it.manager.run().error();
}

}  // namespace
}  // namespace kubelane::test
