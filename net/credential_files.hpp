#pragma once

#include "config/config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kubelane::net {

/// What the configured files hold. Nothing: it is wanted, but not to be had now. Empty: not wanted.
struct credential_files {
  std::optional<std::string> ca_pem;
  std::optional<std::string> certificate_pem;
  std::optional<std::string> key_pem;
  std::optional<std::string> token;
  std::vector<std::string> paths;  ///< of every file that was looked for
  std::string note;                ///< the first thing that is wrong, in words: `no CA file yet`
  bool unreadable = false;         ///< a file is there but could not be read: worth another try
};

/// Reads them now, a kubeconfig and what it names included.
credential_files read_credential_files(const config::probe_tls& settings);

}  // namespace kubelane::net
