// `check --node`: what it reads of a node, its output and its exit statuses.

#include "tests/support/temporary_folder.hpp"
#include "world.hpp"

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

namespace kubelane::test {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The files of a node, below a folder.
class node_files {
 public:
  node_files() {
    write("/etc/kubelane/config.yaml", "upstreams: [{name: cp1, address: 10.0.0.11}]\n");
    write("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
    kubeconfig("/etc/kubernetes/kubelet.conf", "https://localhost:6443");
    write("/proc/net/tcp", listener("0100007F:192B", 11) + listener("0100007F:1F91", 12));
    write("/proc/net/tcp6", listener("00000000000000000000000001000000:192B", 13));
    write("/proc/net/if_inet6", "00000000000000000000000000000001 01 80 10 80       lo\n");
    process("42", "kubelane", {"11", "12", "13"});
  }

  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root() + path).parent_path());
    folder_.write(path.substr(1), text);
  }

  void kubeconfig(const std::string& path, const std::string& server,
                  const std::string& user = "{}") const {
    write(path,
          "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
          "clusters: [{name: k, cluster: {server: \"" +
              server +
              "\"}}]\n"
              "users: [{name: u, user: " +
              user + "}]\n");
  }

  void process(const std::string& pid, const std::string& name,
               const std::vector<std::string>& inodes, const std::string& command = "") const {
    write("/proc/" + pid + "/comm", name + "\n");
    write("/proc/" + pid + "/cmdline", command);
    const auto folder = root() + "/proc/" + pid + "/fd/";
    std::filesystem::create_directories(folder);
    for (const auto& each : inodes)
      std::filesystem::create_symlink("socket:[" + each + "]", folder + each);
  }

  static std::string listener(const std::string& address, int inode) {
    return "   0: " + address + " 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 " +
           std::to_string(inode) + " 1 0 100 0 0 10 0\n";
  }

  std::string root() const { return folder_ / ""; }

  /// What `check --node` prints; its exit status is in `status`.
  std::string check(std::vector<std::string> further = {}) {
    std::vector<std::string> arguments = {"check", "--node", "--root", root()};
    arguments.insert(arguments.end(), further.begin(), further.end());
    binary run(arguments);
    status = run.wait();
    return run.out();
  }

  int status = -1;

 private:
  temporary_folder folder_;
};

TEST(CheckNode, OfAGoodNodeExitsZero) {
  node_files node;
  EXPECT_EQ(node.check(), "this node: good\n");
  EXPECT_EQ(node.status, 0);
}

TEST(CheckNode, NamesWhatIsWrongByRuleAndPlaceAndExitsTwo) {
  node_files node;
  node.write("/etc/kubernetes/manifests/nginx-proxy.yml", "{}");
  node.kubeconfig("/etc/kubernetes/kubelet.conf", "https://10.0.0.11:6443");
  node.kubeconfig("/etc/cni/net.d/calico-kubeconfig", "https://127.0.0.1:7443");
  node.kubeconfig("/etc/kubernetes/admin.conf", "https://10.0.0.11:6443");
  const auto said = node.check();
  EXPECT_EQ(node.status, 2);
  EXPECT_THAT(said,
              HasSubstr("/etc/kubernetes/manifests/nginx-proxy.yml: error: proxy-manifest: "));
  EXPECT_THAT(said, HasSubstr("/etc/kubernetes/kubelet.conf: error: kubeconfig-elsewhere: "));
  EXPECT_THAT(said, HasSubstr("/etc/kubernetes/admin.conf: warning: kubeconfig-elsewhere: "));
  EXPECT_THAT(said, HasSubstr("/etc/cni/net.d/calico-kubeconfig: error: ports-differ: "));
  EXPECT_THAT(said, HasSubstr("this node: 3 errors, 1 other findings\n"));
}

TEST(CheckNode, NamesWhoHoldsThePort) {
  node_files node;
  std::filesystem::remove_all(node.root() + "/proc/42");
  node.process("42", "nginx", {"11"});
  node.process("43", "kubelane", {"12", "13"});
  EXPECT_THAT(node.check(), HasSubstr("127.0.0.1:6443: error: proxy-process: is held by nginx "
                                      "(process 42)"));
}

TEST(CheckNode, FindsTheKubeletsOwnKubeconfig) {
  node_files node;
  node.kubeconfig("/srv/kubelet.conf", "https://10.0.0.12:6443");
  using namespace std::string_literals;
  node.process("50", "kubelet", {}, "/usr/bin/kubelet\0--kubeconfig=/srv/kubelet.conf\0"s);
  EXPECT_THAT(node.check(), HasSubstr("/srv/kubelet.conf: error: kubeconfig-elsewhere: "));
  std::filesystem::remove_all(node.root() + "/proc/50");
  EXPECT_EQ(node.check(), "this node: good\n");
  node.write("/etc/kubernetes/kubelet.env", "KUBELET_ARGS=\"--kubeconfig=/srv/kubelet.conf \\\n\"");
  EXPECT_THAT(node.check(), HasSubstr("/srv/kubelet.conf: error: kubeconfig-elsewhere: "));
}

std::string options_of_kubelet(const std::string& kubeconfig) {
  using namespace std::string_literals;
  return "/usr/bin/kubelet\0--kubeconfig="s + kubeconfig + "\0"s;
}

TEST(CheckNode, AnotherUsersProcessIsNotTheKubelet) {
  if (::geteuid() != 0) GTEST_SKIP() << "files of another user need root";
  node_files node;
  node.kubeconfig("/tmp/evil", "https://10.0.0.12:6443");
  node.process("50", "kubelet", {}, options_of_kubelet("/tmp/evil"));
  EXPECT_THAT(node.check(), HasSubstr("/tmp/evil: error: kubeconfig-elsewhere: "));
  ASSERT_EQ(::chown((node.root() + "/proc/50").c_str(), 65534, 65534), 0);
  EXPECT_EQ(node.check(), "this node: good\n");
}

TEST(CheckNode, ReadsNothingThatNeverEnds) {
  node_files node;
  node.write("/srv/large", std::string(1024 * 1024 + 1, 'a'));
  node.process("50", "kubelet", {}, options_of_kubelet("/srv/large"));
  EXPECT_THAT(node.check(),
              HasSubstr("/srv/large: warning: kubeconfig-unreadable: is larger than "));
  ASSERT_EQ(::mkfifo((node.root() + "/srv/pipe").c_str(), 0600), 0);
  node.process("50", "kubelet", {}, options_of_kubelet("/srv/pipe"));
  EXPECT_THAT(node.check(), HasSubstr("/srv/pipe: warning: kubeconfig-unreadable: is no regular "));
  std::filesystem::create_symlink("/dev/zero", node.root() + "/srv/zero");
  node.process("50", "kubelet", {}, options_of_kubelet("/srv/zero"));
  EXPECT_THAT(node.check(), HasSubstr("/srv/zero: warning: kubeconfig-unreadable: is no regular "));
}

TEST(CheckNode, ANameOfAProcessDoesNotReachTheTerminalRaw) {
  node_files node;
  std::filesystem::remove_all(node.root() + "/proc/42");
  node.process("42", "\x1b]0;owned\x07", {"11"});
  node.process("43", "kubelane", {"12", "13"});
  const auto said = node.check();
  EXPECT_THAT(said, HasSubstr("is held by ?]0;owned? (process 42)"));
  EXPECT_THAT(said, Not(HasSubstr("\x1b")));
}

/// A command by a shell, with no descriptors but 0 to 2: its exit status, and all that it says.
std::pair<int, std::string> shell(const std::string& command) {
  const auto line = "exec 2>&1 3>&- 4>&- 5>&-; " + command;
  auto* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return {-1, ""};
  std::string said;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), said};
}

TEST(CheckNode, AFolderThatMayNotBeReadIsNoReasonToCrash) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become nobody";
  node_files node;
  std::filesystem::permissions(node.root(), std::filesystem::perms(0755));
  for (const char* closed : {"/etc/kubernetes", "/var/lib/kubelet/pods/1"}) {
    std::filesystem::create_directories(node.root() + closed);
    std::filesystem::permissions(node.root() + closed, std::filesystem::perms(0700));
  }
  // Its own binary, because the folder of this one may be closed to nobody too.
  std::filesystem::copy_file(KUBELANE_BINARY, node.root() + "/kubelane");
  const std::string nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups ";
  const auto [status, said] =
      shell("exec " + nobody + node.root() + "/kubelane check --node --root " + node.root());
  EXPECT_EQ(said, "this node: good\n");
  EXPECT_EQ(status, 0);
  const auto inventory = node.root() + "/etc/kubernetes/hosts.ini";
  EXPECT_THAT(
      shell("exec " + nobody + node.root() + "/kubelane inventory check " + inventory).second,
      HasSubstr("hosts.ini: error: unreadable: cannot be read\n"));
}

TEST(Command, WhatItDidNotForeseeIsSaidAndExitsOne) {
  node_files node;
  const auto [status, said] =
      shell("ulimit -n 4; exec " KUBELANE_BINARY " check --probe --config " + node.root() +
            "/etc/kubelane/config.yaml");
  EXPECT_EQ(status, 1) << said;
  EXPECT_THAT(said, HasSubstr("\nkubelane: "));
  EXPECT_THAT(said, HasSubstr("Too many open files"));
}

TEST(CheckNode, FindsKubeProxysKubeconfigInItsPod) {
  node_files node;
  const std::string volume = "/volumes/kubernetes.io~configmap/kube-proxy/kubeconfig.conf";
  node.kubeconfig("/var/lib/kubelet/pods/0b5c" + volume, "https://10.0.0.12:6443");
  EXPECT_THAT(node.check(), HasSubstr("kubeconfig.conf: error: kubeconfig-elsewhere: kube-proxy"));
}

TEST(CheckNode, SeesLocalhostOfAnotherFamily) {
  node_files node;
  node.write("/etc/hosts", "::1 localhost\n");
  node.write("/etc/kubelane/config.yaml",
             "listen: 127.0.0.1:6443\nupstreams: [{name: cp1, address: 10.0.0.11}]\n");
  EXPECT_THAT(node.check(), HasSubstr("/etc/kubernetes/kubelet.conf: error: ports-differ: "));
  node.write("/etc/hosts", "::1 localhost\n127.0.0.1 localhost\n");
  EXPECT_THAT(node.check(), HasSubstr("/etc/kubernetes/kubelet.conf: error: localhost-family: "));
}

TEST(CheckNode, SeesSelinux) {
  node_files node;
  node.write("/sys/fs/selinux/enforce", "1");
  node.write("/proc/42/attr/current", "system_u:system_r:unconfined_service_t:s0");
  EXPECT_THAT(node.check(), HasSubstr("/sys/fs/selinux/enforce: notice: selinux-port: "));
  EXPECT_EQ(node.status, 0);
}

TEST(CheckNode, SeesCertificatesThatAreAboutToExpire) {
  node_files node;
  const auto client = test_authority().issue(
      {.common_name = "system:node:w1", .names = {}, .valid_until = std::chrono::hours(72)});
  node.kubeconfig("/etc/kubernetes/kubelet.conf", "https://localhost:6443",
                  "{client-certificate: /var/lib/kubelet/pki/c.pem, client-key: /k.pem}");
  node.write("/var/lib/kubelet/pki/c.pem", client.certificate_pem);
  EXPECT_THAT(node.check(),
              HasSubstr("/var/lib/kubelet/pki/c.pem: error: certificate-expiry: the certificate "
                        "system:node:w1 expires in "));
  EXPECT_EQ(node.status, 2);
}

TEST(CheckNode, SaysWhatIsWrongWithTheConfigurationAndGoesOn) {
  node_files node;
  node.write("/etc/kubelane/config.yaml", "upstreems: []\n");
  node.write("/etc/kubernetes/manifests/haproxy.yml", "{}");
  const auto said = node.check();
  EXPECT_EQ(node.status, 2);
  EXPECT_THAT(said, HasSubstr("/etc/kubelane/config.yaml: error: configuration: 1:1: upstreems: "));
  EXPECT_THAT(said, HasSubstr("/etc/kubernetes/manifests/haproxy.yml: error: proxy-manifest: "));
}

TEST(CheckNode, PrintsJson) {
  node_files node;
  node.write("/etc/kubernetes/manifests/nginx-proxy.yml", "{}");
  const auto document = boost::json::parse(node.check({"--format", "json"}));
  const auto& findings = document.at("findings").as_array();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].at("rule").as_string(), "proxy-manifest");
  EXPECT_EQ(findings[0].at("severity").as_string(), "error");
  EXPECT_EQ(findings[0].at("at").as_string(), "/etc/kubernetes/manifests/nginx-proxy.yml");
  EXPECT_TRUE(document.at("servers").as_array().empty());
}

TEST(CheckNode, ProbesAndSeesClocksCertificatesAndFailures) {
  world world;
  node_files node;
  node.write("/etc/kubelane/config.yaml", world.configuration());
  world.servers[0]->change([](auto& how) { how.date = "Thu, 01 Jan 2009 00:00:00 GMT"; });
  const auto said = node.check({"--probe"});
  EXPECT_EQ(node.status, 2);
  EXPECT_THAT(said, HasSubstr("cp1: error: clock-off: its clock is "));
  EXPECT_THAT(said, Not(HasSubstr("cp2: error: clock-off")));
  EXPECT_THAT(said,
              HasSubstr("cp2: error: certificate-expiry: its serving certificate expires in "));
  EXPECT_THAT(said, HasSubstr("\ncp3: ready\n"));
}

TEST(CheckNode, AFailedProbeAloneExitsThree) {
  node_files node;
  node.write("/etc/kubelane/config.yaml", "upstreams: [{name: cp1, address: \"127.0.0.1:1\"}]\n");
  EXPECT_THAT(node.check({"--probe"}), HasSubstr("cp1: refused"));
  EXPECT_EQ(node.status, 3);
}

TEST(CheckNode, OfThisVeryNodeSeesItsProcesses) {
  world world;
  const auto path = world.write(world.configuration());
  binary run({"run", "--config", path});
  ASSERT_TRUE(answers(world.admin, "/livez", 200)) << run.error();
  binary check({"check", "--node", "--config", path});
  check.wait();
  const auto port = "127.0.0.1:" + std::to_string(world.port) + ": error";
  EXPECT_THAT(check.out(), Not(HasSubstr(port)));
  run.signal(SIGTERM);
  run.wait();
  binary again({"check", "--node", "--config", path});
  EXPECT_EQ(again.wait(), 2);
  EXPECT_THAT(again.out(), HasSubstr(port + ": not-serving: "));
}

TEST(CheckNode, ItsOptionsNeedIt) {
  binary root({"check", "--root", "/", "--config", "/dev/null"});
  EXPECT_EQ(root.wait(), 64);
  binary neither({"check"});
  EXPECT_EQ(neither.wait(), 64);
  EXPECT_THAT(neither.error(), HasSubstr("--config"));
}

}  // namespace
}  // namespace kubelane::test
