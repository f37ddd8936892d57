#pragma once

#include "inventory/finding.hpp"
#include "inventory/model.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// Why Ansible refuses a source. What the source said before that stays in the model.
struct refusal {
  std::string rule = "unreadable";
  place at;
  std::string message;
};

/// Reads an INI inventory into a model, as Ansible's plugin does. Findings are those that Ansible
/// keeps to itself: a host that a group names twice.
std::optional<refusal> read_ini(std::string_view text, int file, model& into,
                                std::vector<finding>& findings);

/// Reads a YAML (or JSON) inventory into a model, as Ansible's plugin does. `is_plugin` is set for
/// the configuration of a dynamic inventory, which only Ansible can run.
std::optional<refusal> read_yaml_inventory(std::string_view text, int file, model& into,
                                           std::vector<finding>& findings, bool& is_plugin);

/// Group names that kubespray gives a meaning, its old ones included: what a misspelt one may mean.
const std::vector<std::string>& known_groups();

}  // namespace kubelane::inventory
