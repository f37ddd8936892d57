#pragma once

#include "config/config.hpp"
#include "net/tls.hpp"

#include <chrono>
#include <memory>
#include <string>

namespace kubelane::net {

/// How to verify API servers and what to show them, from files that come and go: a CA that does not
/// exist yet, certificates that rotate. Reads files of a few KiB; blocks no longer than that.
///
/// Without a CA (yet) nothing can be verified: the context verifies nothing then, and `verifies`
/// says so. What was good once is kept until its successor is whole: a CA that vanished or broke, a
/// certificate whose key does not fit.
class credentials {
 public:
  /// Reads what is there now.
  explicit credentials(config::probe_tls settings);
  ~credentials();
  credentials(credentials&&) noexcept;
  credentials& operator=(credentials&&) noexcept;

  enum class change {
    none,
    renewed,
    verifiable,  ///< renewed, and identity can be verified from now on
  };
  /// Looks for changed files; to be called several times a second. A change counts half a second
  /// after the last write.
  change poll(std::chrono::steady_clock::time_point now);

  const tls_context& context() const noexcept;
  /// Identity is checked: not with `verify: none`, not without a usable CA.
  bool verifies() const noexcept;
  /// For the header of that name: `Bearer ...`; empty without a token, and while the CA that would
  /// keep it from strangers is missing.
  const std::string& authorization() const noexcept;
  const std::string& server_name() const noexcept;
  /// What is missing or wrong, in words for people: `no CA file yet`. Empty if all is well.
  const std::string& note() const noexcept;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace kubelane::net
