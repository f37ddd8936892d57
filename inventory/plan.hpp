#pragma once

#include "inventory/checks.hpp"
#include "inventory/playbooks.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::inventory {

/// etcd's membership at one moment. `tolerated` counts members that answer, beyond a majority.
struct quorum_state {
  int members = 0;
  int majority = 0;
  int tolerated = 0;
};

/// One thing to do, and what it does to whom.
struct plan_step {
  std::string what;
  std::string command;  ///< one line for each command
  touched hosts;
  quorum_state before, during, after;
  names workers_reconfigured;  ///< whose kubelane gets another configuration
  std::string sees;            ///< what kubelane on the workers notices
  std::string verify;          ///< how to tell that it worked
  std::string undo;            ///< the way back
};

/// Why a plan stops: the step that must not be done, and the reason.
struct plan_refusal {
  std::string step;
  std::string why;
};

struct plan {
  std::optional<plan_refusal> refused;
  std::vector<plan_step> steps;    ///< up to the refused one
  std::vector<std::string> notes;  ///< what to know before starting
};

/// One end of a plan.
struct plan_end {
  std::string path;  ///< for the commands
  verdict checked;
  std::string version;  ///< kube_version; empty if not set
};

/// The ordered way from one inventory to the next, in which etcd never loses its majority and the
/// first control plane is never removed. Hosts in `failed` do not answer.
/// Source: kubespray's docs on nodes and on recovering the control plane; etcd's rules for
/// reconfiguration.
plan make_plan(const plan_end& before, const plan_end& after, const names& failed);

/// As printed: text, `--format json`, `--format markdown` (a runbook to keep with the inventory).
std::string plan_text(const plan& of);
std::string plan_json(const plan& of);
std::string plan_markdown(const plan& of, const std::string& before, const std::string& after);

}  // namespace kubelane::inventory
