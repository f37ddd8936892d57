#pragma once

#include <iosfwd>
#include <string>

namespace kubelane::commands {

constexpr const char* packaged_config = "/etc/kubelane/config.yaml";

struct node_options {
  std::string config_path;  ///< empty: `packaged_config`, below `root`
  bool probe = false;
  std::string root;  ///< empty: this very node
  std::string format = "text";
};

/// Prints what keeps a node from reaching the API through kubelane, or will.
///
/// Returns 0 without an error, `bad_config` with one, else `probe_failed` if a server failed.
int check_node(const node_options& options, std::ostream& out);

}  // namespace kubelane::commands
