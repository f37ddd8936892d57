#pragma once

#include "health/quorum.hpp"
#include "inventory/plan.hpp"

#include <string>

namespace kubelane::inventory {

/// Makes the steps of a plan, one after the other, and keeps what is true after each.
class planner {
 public:
  struct end {
    std::string path;
    membership is;
  };

  planner(end before, end after, names failed, plan& into);

  /// All steps but an upgrade; stops at the first that must not be done.
  void run();

  /// Another Kubernetes version: control planes one by one, then workers in batches.
  void upgrade(const std::string& from, const std::string& to);

  /// The fleet's size changes no probe interval, so that only new workers are reconfigured.
  bool same_interval = true;

 private:
  bool refused() const { return into_.refused.has_value(); }
  bool answers(const std::string& host) const { return !contains(failed_, host); }
  health::quorum::standing standing() const;
  quorum_state quorum() const;
  quorum_state quorum_while_adding(int members) const;
  names lost_now() const;

  void recover();
  void snapshot();
  void remove_failed();
  void remove_promoted();
  void add_servers();
  void reorder();
  void remove_servers();
  void add_workers();
  void remove_workers();

  plan_step start(std::string what) const;
  void finish(plan_step step);
  void refuse(std::string step, std::string why);
  void gather_facts(const names& fresh);
  void join_servers(const names& added, const names& new_members);
  void remove_server(const std::string& host);
  bool may_remove_member(const std::string& host);
  void remove_one(const std::string& host, const std::string& kind);
  void put_first(const std::string& first);
  void reconfigure(const membership& next, const std::string& what);
  void move_leader(const std::string& host);
  void update_members();
  void refresh_members();
  std::string inventory_of(const membership& state) const;
  std::string inventory() const;
  std::string staged() const;
  std::string staged(const membership& state) const;
  std::string playbook(const std::string& rest) const;
  static std::string rows(const names& hosts);

  end before_, after_;
  names failed_;
  plan& into_;
  membership now_;
};

}  // namespace kubelane::inventory
