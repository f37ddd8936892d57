#include "node/gather.hpp"

#include "config/kubeconfig.hpp"
#include "net/certificate_dates.hpp"
#include "node/proc.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

namespace kubelane::node {
namespace {

namespace fs = std::filesystem;
namespace ip = boost::asio::ip;

const std::map<std::string, std::string> proxy_manifests = {{"nginx-proxy.yml", "nginx"},
                                                            {"nginx-proxy.yaml", "nginx"},
                                                            {"haproxy.yml", "haproxy"},
                                                            {"haproxy.yaml", "haproxy"}};
constexpr const char* kubernetes = "/etc/kubernetes";
constexpr const char* kubelet_config = "/etc/kubernetes/kubelet.conf";
constexpr std::size_t longest_file = 1024 * 1024;
constexpr const char* ipv6_loopback = "00000000000000000000000000000001";

class gatherer {
 public:
  gatherer(std::string root, const config::config& settings) : root_(std::move(root)) {
    while (root_.ends_with('/')) root_.pop_back();
    facts_.now = std::chrono::system_clock::now();
    facts_.listen = settings.listen;
    facts_.admin = settings.admin_listen;
    for (const auto& each : settings.upstreams) facts_.upstreams.push_back(each.address.host);
    const auto& tls = settings.health.tls;
    for (const auto& path : {tls.ca_file, tls.client_cert_file})
      if (!path.empty() && tls.kubeconfig.empty()) certificates(path);
    if (!tls.kubeconfig.empty()) kubeconfig_file(tls.kubeconfig, client::other);
  }

  facts run() {
    manifests();
    processes();
    kubeconfigs();
    localhost();
    selinux();
    return std::move(facts_);
  }

 private:
  // Whole, if it is a file of a sensible size; else `why_` says what is the matter.
  std::optional<std::string> read(const std::string& path) {
    auto text = start_of(path);
    if (!text || text->size() <= longest_file) return text;
    why_ = "is larger than 1 MiB";
    return std::nullopt;
  }

  // The kernel's tables begin with the listeners; connections, which may be many, come after them.
  std::string table(const std::string& path) { return start_of(path).value_or(""); }

  // Its first MiB and one byte. What is no file is not read: others may have chosen the path, and a
  // pipe or a device would never end.
  std::optional<std::string> start_of(const std::string& path) {
    const int file = ::open((root_ + path).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat about {};
    if (file < 0 || ::fstat(file, &about) != 0) {
      why_ = std::strerror(errno);
      if (file >= 0) ::close(file);
      return std::nullopt;
    }
    std::string text;
    ssize_t got = -1;
    if (S_ISREG(about.st_mode)) {
      char part[16 * 1024];
      while ((got = ::read(file, part, sizeof part)) > 0 && text.size() <= longest_file)
        text.append(part, static_cast<std::size_t>(got));
      why_ = std::strerror(errno);
    } else {
      why_ = "is no regular file";
    }
    ::close(file);
    return got < 0 ? std::nullopt : std::optional(std::move(text));
  }

  bool exists(const std::string& path) const {
    std::error_code error;  // what may not be looked at is not there
    return fs::exists(root_ + path, error);
  }

  // Anybody may call a process `kubelet`; the real one is root's, as is this node's root folder.
  bool is_of_the_system(int pid) const {
    struct stat root {
    }, process{};
    const auto folder = root_ + "/proc/" + std::to_string(pid);
    return ::stat((root_ + "/").c_str(), &root) == 0 && ::stat(folder.c_str(), &process) == 0 &&
           process.st_uid == root.st_uid;
  }

  // Names in a folder, in order; none if it is not there or may not be read.
  std::vector<std::string> list(const std::string& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(root_ + folder, error), end; !error && at != end;
         at.increment(error))
      names.push_back(at->path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  void manifests() {
    const std::string folder = std::string(kubernetes) + "/manifests";
    for (const auto& name : list(folder)) {
      const auto known = proxy_manifests.find(name);
      if (known != proxy_manifests.end())
        facts_.manifests.push_back({folder + "/" + name, known->second});
    }
  }

  void processes() {
    if (!exists("/proc/net/tcp") && !exists("/proc/net/tcp6")) return;
    auto found = parse_listeners(table("/proc/net/tcp"));
    for (auto& each : parse_listeners(table("/proc/net/tcp6"))) found.push_back(each);
    const auto owners = socket_owners(found);
    facts_.listeners.emplace();
    for (const auto& each : found) {
      const auto owner = owners.find(each.inode);
      const int pid = owner == owners.end() ? 0 : owner->second;
      facts_.listeners->push_back({each.address, pid, pid == 0 ? "" : process_name(pid)});
    }
    const auto addresses = read("/proc/net/if_inet6").value_or("");
    facts_.has_ipv6_loopback = addresses.find(ipv6_loopback) != std::string::npos;
  }

  std::vector<int> pids() {
    std::vector<int> found;
    for (const auto& name : list("/proc"))
      if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
        found.push_back(std::atoi(name.c_str()));
    return found;
  }

  std::string process_name(int pid) {
    auto name = read("/proc/" + std::to_string(pid) + "/comm").value_or("");
    if (name.ends_with('\n')) name.pop_back();
    return name;
  }

  // Several processes may share a listener; systemd, which only keeps kubelane's, does not count.
  std::map<std::uint64_t, int> socket_owners(const std::vector<listening>& wanted) {
    std::map<std::uint64_t, int> owners;
    for (const int pid : pids()) {
      if (pid == 1) continue;
      const auto folder = "/proc/" + std::to_string(pid) + "/fd";
      for (const auto& name : list(folder)) {
        std::error_code error;
        const auto inode =
            socket_inode(fs::read_symlink(root_ + folder + "/" + name, error).string());
        const auto is_wanted = [&](const listening& each) { return inode == each.inode; };
        if (inode && std::any_of(wanted.begin(), wanted.end(), is_wanted))
          owners.try_emplace(*inode, pid);
      }
    }
    return owners;
  }

  void kubeconfigs() {
    const std::string folder = kubernetes;
    const bool has_joined = exists(kubelet_config);
    for (const auto& name : list(folder)) {
      if (!name.ends_with(".conf")) continue;
      // Until the node has joined it is discovery's, which never goes through localhost.
      if (name == "bootstrap-kubelet.conf") continue;
      const auto who = name == "kubelet.conf"           ? client::kubelet
                       : name.starts_with("kube-proxy") ? client::kube_proxy
                                                        : client::other;
      kubeconfig_file(folder + "/" + name, who);
    }
    const auto other = kubelet_option();
    if (!other.empty() && (other != kubelet_config || !has_joined))
      kubeconfig_file(other, client::kubelet);
    for (const auto& name : list("/etc/cni/net.d"))
      if (name.find("kubeconfig") != std::string::npos)
        kubeconfig_file("/etc/cni/net.d/" + name, client::cni);
    const std::string pods = "/var/lib/kubelet/pods";
    for (const auto& pod : list(pods)) {
      const auto path =
          pods + "/" + pod + "/volumes/kubernetes.io~configmap/kube-proxy/kubeconfig.conf";
      if (exists(path)) kubeconfig_file(path, client::kube_proxy);
    }
  }

  // The kubelet's --kubeconfig: of the process, else of the files that start it.
  std::string kubelet_option() {
    for (const int pid : pids()) {
      if (process_name(pid) != "kubelet" || !is_of_the_system(pid)) continue;
      const auto line = read("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
      const auto value = option_value(line, "kubeconfig", '\0');
      if (!value.empty()) return value;
    }
    for (const char* path : {"/etc/kubernetes/kubelet.env", "/var/lib/kubelet/kubeadm-flags.env"}) {
      const auto value = option_value(read(path).value_or(""), "kubeconfig", ' ');
      if (!value.empty()) return value;
    }
    return {};
  }

  void kubeconfig_file(const std::string& path, client who) {
    const auto same = [&](const kubeconfig& each) { return each.path == path; };
    if (std::any_of(facts_.kubeconfigs.begin(), facts_.kubeconfigs.end(), same)) return;
    const auto text = read(path);
    if (!text) {
      facts_.kubeconfigs.push_back({path, who, "", why_});
      return;
    }
    const auto parsed = config::parse_kubeconfig(*text, fs::path(path).parent_path());
    if (!parsed) {
      facts_.kubeconfigs.push_back({path, who, "", parsed.error()});
      return;
    }
    facts_.kubeconfigs.push_back({path, who, parsed->server, ""});
    certificates_of(*parsed, path);
  }

  void certificates_of(const config::kubeconfig& from, const std::string& path) {
    if (!from.certificate_pem.empty()) dates(from.certificate_pem, path, "the client certificate");
    if (!from.certificate_file.empty()) certificates(from.certificate_file);
    if (!from.ca_pem.empty()) dates(from.ca_pem, path, "the CA");
    if (!from.ca_file.empty()) certificates(from.ca_file);
  }

  void certificates(const std::string& path) {
    const auto same = [&](const certificate& each) { return each.place == path; };
    if (std::any_of(facts_.certificates.begin(), facts_.certificates.end(), same)) return;
    if (const auto text = read(path)) dates(*text, path, "the certificate");
  }

  void dates(const std::string& pem, const std::string& place, const std::string& what) {
    for (const auto& each : net::read_certificate_dates(pem))
      facts_.certificates.push_back(
          {place, what + (each.common_name.empty() ? "" : " " + each.common_name), each.from,
           each.until});
  }

  void localhost() {
    if (root_.empty()) return ask_resolver();
    facts_.localhost = {parse_hosts(read("/etc/hosts").value_or("")), "/etc/hosts"};
  }

  void ask_resolver() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo("localhost", nullptr, &hints, &found) != 0) return;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, freeaddrinfo);
    for (const auto* each = found; each != nullptr; each = each->ai_next) {
      char text[NI_MAXHOST] = "";
      if (getnameinfo(each->ai_addr, each->ai_addrlen, text, sizeof text, nullptr, 0,
                      NI_NUMERICHOST) != 0)
        continue;
      boost::system::error_code error;
      const auto address = ip::make_address(text, error);
      if (!error) facts_.localhost.addresses.push_back(address);
    }
    facts_.localhost.said_by = "the resolver (getaddrinfo)";
  }

  void selinux() {
    using mode = selinux::mode;
    const auto enforce = read("/sys/fs/selinux/enforce");
    if (!enforce) return;
    auto& found = facts_.selinux;
    found.how = enforce->starts_with('1') ? mode::enforcing : mode::permissive;
    for (const int pid : pids())
      if (process_name(pid) == "kubelane")
        found.domain =
            selinux_type(read("/proc/" + std::to_string(pid) + "/attr/current").value_or(""));
    for (const auto& policy : list("/var/lib/selinux")) {
      const auto path = "/var/lib/selinux/" + policy + "/active/ports.local";
      for (auto& each : parse_port_labels(read(path).value_or(""), path))
        found.ports.push_back(std::move(each));
    }
  }

  std::string root_;
  std::string why_;
  facts facts_;
};

}  // namespace

facts gather(const std::string& root, const config::config& settings) {
  return gatherer(root, settings).run();
}

}  // namespace kubelane::node
