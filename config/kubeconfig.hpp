#pragma once

#include <boost/system/result.hpp>

#include <string>
#include <string_view>

namespace kubelane::config {

/// What a client needs of a kubeconfig: the current context's cluster and user. File names are
/// absolute, or relative to the working folder if the kubeconfig's own folder is; text and file of
/// one thing are never both set (the text wins, as in Kubernetes' clients).
struct kubeconfig {
  std::string server;       ///< URL
  std::string server_name;  ///< expected in the certificate instead of the server's host; or empty
  std::string ca_pem;
  std::string ca_file;
  std::string certificate_pem;
  std::string certificate_file;
  std::string key_pem;
  std::string key_file;
  std::string token;
  std::string token_file;
  bool runs_a_command = false;  ///< credentials come from a plugin, which is not supported
};

/// Reads a kubeconfig's text; `folder` is where its file is. Fails with what is wrong in words,
/// with the line if there is one. Unknown keys are passed over.
/// Source: Kubernetes, "Organizing Cluster Access Using kubeconfig Files", and client-go.
boost::system::result<kubeconfig, std::string> parse_kubeconfig(std::string_view yaml,
                                                                const std::string& folder);

}  // namespace kubelane::config
