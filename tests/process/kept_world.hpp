#pragma once

#include "service_manager.hpp"
#include "tests/support/poll_until.hpp"
#include "world.hpp"

#include <string>

namespace kubelane::test {

/// A kubelane that serves three ready API servers, under a service manager with a descriptor store.
struct kept_world : world {
  explicit kept_world(std::size_t store_size = 2048)
      : path(write(configuration())),
        manager({"run", "--config", path}, store_size, {"STATE_DIRECTORY=" + (folder / "")}) {
    manager.start();
    ready = serves();
  }

  bool serves() {
    bool all = manager.ready();
    for (const char* name : {"cp1", "cp2", "cp3"}) all = all && becomes(admin, name, "ready");
    return all;
  }
  /// Waits until so many connections are stored.
  bool stores(double connections) {
    return poll_until([&] { return metric(admin, "kubelane_stored_connections") == connections; },
                      20s);
  }
  /// Waits until the store holds nothing but what every kubelane has there: the listener, the
  /// table, the canary.
  bool store_is_clean() { return is_clean(manager.store); }
  static bool is_clean(const descriptor_store& store) {
    return poll_until(
        [&] {
          return store.held().size() == 3 && store.count("l") == 1 &&
                 store.count("connections") == 1 && store.count("canary") == 1;
        },
        8s);
  }
  const std::string& log() { return manager.run().error(); }

  bool ready = false;
  std::string path;
  service_manager manager;
};

}  // namespace kubelane::test
