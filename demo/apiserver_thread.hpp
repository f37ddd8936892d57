#pragma once

#include "demo/apiserver.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kubelane::demo {

/// An `apiserver` on a thread and a loop of its own. Every member can be called from any one
/// thread.
class apiserver_thread {
 public:
  /// Throws as `apiserver` does.
  explicit apiserver_thread(apiserver_options options);
  /// Stops the server, ends its connections and joins the thread.
  ~apiserver_thread();
  apiserver_thread(apiserver_thread&&) noexcept;

  const std::string& name() const noexcept;
  net::endpoint address() const noexcept;
  /// Runs `what` on the server's thread and waits until it is done.
  void with(const std::function<void(apiserver&)>& what);

  // Shorthands.
  void change(const std::function<void(apiserver_behaviour&)>& what);
  void answer(const std::string& path, path_answer with_this);
  apiserver_counters counters();
  void freeze();
  void thaw();
  void use(const net::server_tls& tls);
  void stop_listening();
  void listen();
  void drop_connections(first_act how);
  void kill();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// What kube-apiserver answers on `/readyz` when these checks fail.
path_answer failing_readyz(const std::vector<std::string>& failed_checks);

}  // namespace kubelane::demo
