#pragma once

#include "binary.hpp"
#include "tests/support/fake_apiserver.hpp"
#include "tests/support/temporary_folder.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>

namespace kubelane::test {

/// Three fake API servers, and a configuration for them with ports of its own.
class world {
 public:
  world();

  /// The configuration's text; `extra` holds any further section, `health` keys of that section.
  std::string configuration(const std::string& extra = "", const std::string& health = "") const;
  /// Writes it; the path.
  std::string write(const std::string& text) const { return folder.write("config.yaml", text); }

  int port = free_port();
  int admin = free_port();
  temporary_folder folder;
  std::array<std::unique_ptr<fake_apiserver>, 3> servers;
};

/// Waits until `path` of the admin port answers `status`.
bool answers(int admin, const std::string& path, int status,
             std::chrono::milliseconds limit = std::chrono::seconds(20));
/// Waits until upstream `name` is in `state`.
bool becomes(int admin, const std::string& name, const std::string& state,
             std::chrono::milliseconds limit = std::chrono::seconds(20));
/// The value of one series of /metrics; nothing if it is not there.
std::optional<double> metric(int admin, const std::string& series);

}  // namespace kubelane::test
