#pragma once

#include "line_client.hpp"
#include "world.hpp"

#include <string>
#include <utility>
#include <vector>

namespace kubelane::test {

/// A kubelane that serves three ready API servers.
struct serving : world {
  explicit serving(const std::string& extra = "", const std::string& health = "")
      : path(write(configuration(extra, health))), run({"run", "--config", path}) {
    ready = true;
    for (const char* name : {"cp1", "cp2", "cp3"}) ready = ready && becomes(admin, name, "ready");
  }

  /// Idle connections that have had an answer, with the name of their server.
  std::vector<std::pair<line_client, std::string>> hold(int count) {
    std::vector<std::pair<line_client, std::string>> held;
    for (int i = 0; i < count; ++i) {
      line_client client(port);
      auto name = client.ask("name").value_or("nobody");
      held.emplace_back(std::move(client), std::move(name));
    }
    return held;
  }

  /// Of `kubelane_config_reloads_total`.
  double reloads(const char* result) const {
    return metric(admin, std::string("kubelane_config_reloads_total{result=\"") + result + "\"}")
        .value_or(-1);
  }

  bool ready = false;
  std::string path;
  binary run;
};

}  // namespace kubelane::test
