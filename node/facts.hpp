#pragma once

#include "net/endpoint.hpp"

#include <boost/asio/ip/address.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace kubelane::node {

using moment = std::chrono::system_clock::time_point;

/// A static pod's manifest that bears the name of a local proxy.
struct manifest {
  std::string path;
  std::string proxy;  ///< nginx, haproxy
};

/// A TCP listener of this host's network.
struct listener {
  net::endpoint address;
  int pid = 0;          ///< 0: not known, as without root
  std::string process;  ///< its name
};

enum class client { kubelet, kube_proxy, cni, other };

/// A kubeconfig, and who uses it.
struct kubeconfig {
  std::string path;
  client who = client::other;
  std::string server;   ///< the URL
  std::string problem;  ///< why it cannot be read, in words; then the rest is empty
};

struct certificate {
  std::string place;  ///< a file, or an API server
  std::string what;   ///< as `the client certificate kubernetes-admin`
  moment from{};
  moment until{};
};

/// What `localhost` means here, in the order in which it is tried.
struct localhost {
  std::vector<boost::asio::ip::address> addresses;
  std::string said_by;  ///< as `/etc/hosts`
};

struct selinux {
  enum class mode { absent, permissive, enforcing };
  mode how = mode::absent;
  std::string domain;  ///< kubelane's type, as `unconfined_service_t`; empty: it does not run
  /// Labels of single ports that somebody has set, as semanage keeps them.
  struct label {
    int first = 0;
    int last = 0;
    std::string type;
    std::string place;
  };
  std::vector<label> ports;
};

/// What an API server's answer showed.
struct answered {
  std::string name;
  std::chrono::seconds ahead{0};  ///< its clock minus this node's, to a second or so
};

/// What is known of a node. Nothing means: cannot be known here.
struct facts {
  moment now{};
  std::string config_path;
  std::string config_problem;          ///< why the configuration cannot be used
  std::vector<net::endpoint> listen;   ///< kubelane's addresses
  net::endpoint admin;                 ///< kubelane's too
  std::vector<std::string> upstreams;  ///< hosts of the API servers
  std::vector<manifest> manifests;
  std::optional<std::vector<listener>> listeners;
  std::optional<bool> has_ipv6_loopback;
  std::vector<kubeconfig> kubeconfigs;
  struct localhost localhost;
  std::vector<certificate> certificates;
  struct selinux selinux;
  std::vector<answered> servers;
};

}  // namespace kubelane::node
