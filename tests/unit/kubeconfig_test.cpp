#include "config/kubeconfig.hpp"

#include <gtest/gtest.h>

namespace kubelane::config {
namespace {

const std::string with_files = R"(apiVersion: v1
kind: Config
clusters:
- name: other
  cluster: {server: "https://10.0.0.1:6443"}
- name: default-cluster
  cluster:
    certificate-authority: ../ssl/ca.crt
    server: https://127.0.0.1:6443
    tls-server-name: kubernetes.default
contexts:
- name: default-context
  context: {cluster: default-cluster, namespace: default, user: default-auth}
current-context: default-context
preferences: {}
users:
- name: default-auth
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
)";

std::string with_user(const std::string& user) {
  return "clusters:\n- name: c\n  cluster: {certificate-authority-data: Y2E=}\n"
         "contexts:\n- name: x\n  context: {cluster: c, user: u}\ncurrent-context: x\n"
         "users:\n- name: u\n  user: {" +
         user + "}\n";
}

TEST(Kubeconfig, ReadsTheKubeletsFiles) {
  const auto read = parse_kubeconfig(with_files, "/etc/kubernetes");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->server, "https://127.0.0.1:6443");
  EXPECT_EQ(read->server_name, "kubernetes.default");
  EXPECT_EQ(read->ca_file, "/etc/kubernetes/../ssl/ca.crt");
  EXPECT_EQ(read->certificate_file, "/var/lib/kubelet/pki/kubelet-client-current.pem");
  EXPECT_EQ(read->key_file, read->certificate_file);
  EXPECT_EQ(read->token, "");
}

TEST(Kubeconfig, ReadsInlineData) {
  const auto read = parse_kubeconfig(
      with_user("client-certificate-data: Y2VydA==, client-key-data: a2V5"), "/etc");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ca_pem, "ca");
  EXPECT_EQ(read->certificate_pem, "cert");
  EXPECT_EQ(read->key_pem, "key");
}

TEST(Kubeconfig, DataIsPreferredToAFile) {
  const auto read =
      parse_kubeconfig(with_user("client-key-data: a2V5, client-key: /etc/key"), "/etc");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->key_pem, "key");
  EXPECT_EQ(read->key_file, "");
}

TEST(Kubeconfig, ReadsATokenAndPrefersItsFile) {
  EXPECT_EQ(parse_kubeconfig(with_user("token: abc"), "/etc")->token, "abc");
  const auto both = parse_kubeconfig(with_user("token: abc, tokenFile: token"), "/etc");
  EXPECT_EQ(both->token, "");
  EXPECT_EQ(both->token_file, "/etc/token");
}

TEST(Kubeconfig, AUserMayBeMissing) {
  const auto read = parse_kubeconfig(
      "clusters: [{name: c, cluster: {server: s}}]\ncontexts: [{name: x, context: {cluster: c}}]\n"
      "current-context: x\n",
      "/etc");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->server, "s");
}

TEST(Kubeconfig, NoticesAPlugin) {
  EXPECT_TRUE(parse_kubeconfig(with_user("exec: {command: aws}"), "/etc")->runs_a_command);
  EXPECT_FALSE(parse_kubeconfig(with_user("token: abc"), "/etc")->runs_a_command);
}

TEST(Kubeconfig, SaysWhatIsMissing) {
  EXPECT_EQ(parse_kubeconfig("clusters: []\n", "").error(), "names no current-context");
  EXPECT_EQ(parse_kubeconfig("current-context: x\n", "").error(), "has no context \"x\"");
  EXPECT_EQ(
      parse_kubeconfig("contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n", "")
          .error(),
      "has no cluster \"c\"");
  EXPECT_EQ(parse_kubeconfig(with_user("client-key-data: \"*\""), "").error(),
            "client-key-data is not base64");
}

TEST(Kubeconfig, SaysWhereItIsBroken) {
  const auto wrong = parse_kubeconfig("clusters:\n- [\n", "").error();
  EXPECT_TRUE(wrong.starts_with("line ")) << wrong;
  EXPECT_FALSE(parse_kubeconfig("", ""));
  EXPECT_FALSE(parse_kubeconfig("just text", ""));
}

}  // namespace
}  // namespace kubelane::config
