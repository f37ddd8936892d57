#pragma once

#include "inventory/finding.hpp"
#include "inventory/model.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kubelane::inventory {

/// A variable as a host has it. Unknown: a template or an encrypted value, which only Ansible can
/// resolve; the finding that says so is made when it is asked for.
struct setting {
  enum class state { unset, set, unknown };
  state is = state::unset;
  const value* content = nullptr;

  place at() const { return content == nullptr ? place{} : content->at; }
};

/// Asks a model for kubespray's variables; never guesses at a template. Host -1 stands for what is
/// set for all hosts.
class settings {
 public:
  settings(const model& from, std::vector<finding>& findings) : model_(from), findings_(findings) {}

  setting get(int host, std::string_view key) const;

  /// As a template sees it; nothing if unknown. A text such as `false`, which counts as true, is a
  /// finding of `rule`.
  std::optional<bool> truth(int host, std::string_view key, bool otherwise,
                            std::string_view rule) const;

  /// A port; `otherwise` if unset. Nothing if unknown or no port (which is a finding).
  std::optional<int> port(int host, std::string_view key, int otherwise) const;

  /// A scalar's text; `otherwise` if unset, nothing if unknown.
  std::optional<std::string> text(int host, std::string_view key, std::string_view otherwise) const;

 private:
  void once(finding what) const;

  const model& model_;
  std::vector<finding>& findings_;
  mutable std::set<std::string> said_;
};

/// `name at FILE:LINE`, or `name` for what has no place.
std::string with_place(const model& in, std::string_view name, place at);

}  // namespace kubelane::inventory
