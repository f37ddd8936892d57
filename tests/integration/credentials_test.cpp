#include "net/credentials.hpp"

#include "tests/support/fake_apiserver.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace kubelane {
namespace {

using change = net::credentials::change;
using namespace std::chrono_literals;

std::string ca() {
  return test::test_authority().certificate_pem();
}

demo::identity client_identity() {
  return test::test_authority().issue(
      {.common_name = "worker-1", .names = {}, .key = demo::key_kind::p256});
}

class Credentials : public testing::Test {
 protected:
  Credentials() {
    settings.ca_file = folder / "ca.crt";
    settings.server_name = "kubernetes.default.svc";
  }

  // Passes time, as the checker's polls do.
  change pass(net::credentials& of, std::chrono::milliseconds time = 1s) {
    auto result = change::none;
    for (const auto end = now + time; now < end; now += 100ms) {
      const auto seen = of.poll(now);
      if (seen != change::none) result = seen;
    }
    return result;
  }

  test::temporary_folder folder;
  config::probe_tls settings;
  std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now();
};

TEST_F(Credentials, VerifyWithTheCaFile) {
  folder.write("ca.crt", ca());
  const net::credentials identity(settings);
  EXPECT_TRUE(identity.verifies());
  EXPECT_EQ(identity.note(), "");
}

TEST_F(Credentials, WithoutACaNothingIsVerifiedAndTheySaySo) {
  const net::credentials identity(settings);
  EXPECT_FALSE(identity.verifies());
  EXPECT_EQ(identity.note(), "no CA file yet");
}

TEST_F(Credentials, ACaThatAppearsIsPickedUpWithinASecond) {
  net::credentials identity(settings);
  pass(identity, 500ms);
  folder.write("ca.crt", ca());
  EXPECT_EQ(pass(identity), change::verifiable);
  EXPECT_TRUE(identity.verifies());
  EXPECT_EQ(identity.note(), "");
}

TEST_F(Credentials, ABrokenCaIsNamed) {
  folder.write("ca.crt", "nonsense");
  const net::credentials identity(settings);
  EXPECT_FALSE(identity.verifies());
  EXPECT_EQ(identity.note(), "CA file: holds no certificate");
}

TEST_F(Credentials, AnUnreadableCaIsNamed) {
  settings.ca_file = folder / "ca.crt" + "/no/such";
  folder.write("ca.crt", "a file, no folder");
  const net::credentials identity(settings);
  EXPECT_EQ(identity.note(), "CA file is unreadable: Not a directory");
}

TEST_F(Credentials, ACaThatBreaksIsKeptUntilItsSuccessorIsWhole) {
  folder.write("ca.crt", ca());
  net::credentials identity(settings);
  const auto before = identity.context();
  folder.write("ca.crt", "nonsense");
  EXPECT_EQ(pass(identity), change::none);
  EXPECT_TRUE(identity.verifies());
  EXPECT_TRUE(identity.context() == before);
  EXPECT_EQ(identity.note(), "CA file is missing or broken, the last good one is used");
  folder.write("ca.crt", demo::authority("next").certificate_pem());
  EXPECT_EQ(pass(identity), change::renewed);
  EXPECT_FALSE(identity.context() == before);
  EXPECT_EQ(identity.note(), "");
}

TEST_F(Credentials, TheSameContentIsNoChange) {
  folder.write("ca.crt", ca());
  net::credentials identity(settings);
  const auto before = identity.context();
  folder.write("ca.crt", ca());
  EXPECT_EQ(pass(identity), change::none);
  EXPECT_TRUE(identity.context() == before);
}

TEST_F(Credentials, WithoutVerificationNoCaIsMissed) {
  settings.verify = config::verify_mode::none;
  const net::credentials identity(settings);
  EXPECT_FALSE(identity.verifies());
  EXPECT_EQ(identity.note(), "");
}

TEST_F(Credentials, AMissingClientCertificateIsNamedButNotMissed) {
  folder.write("ca.crt", ca());
  settings.client_cert_file = folder / "client.crt";
  settings.client_key_file = folder / "client.key";
  const net::credentials identity(settings);
  EXPECT_TRUE(identity.verifies());
  EXPECT_EQ(identity.note(), "no client certificate yet");
}

TEST_F(Credentials, AHalfWrittenRotationKeepsTheOldPair) {
  folder.write("ca.crt", ca());
  const auto old = client_identity();
  settings.client_cert_file = folder.write("client.crt", old.certificate_pem);
  settings.client_key_file = folder.write("client.key", old.key_pem);
  net::credentials identity(settings);
  const auto before = identity.context();
  EXPECT_EQ(identity.note(), "");

  const auto next = client_identity();
  folder.write("client.crt", next.certificate_pem);
  EXPECT_EQ(pass(identity), change::none);
  EXPECT_TRUE(identity.context() == before);
  EXPECT_EQ(identity.note(), "client certificate: key does not fit certificate");

  folder.write("client.key", next.key_pem);
  EXPECT_EQ(pass(identity), change::renewed);
  EXPECT_FALSE(identity.context() == before);
  EXPECT_EQ(identity.note(), "");
}

TEST_F(Credentials, AKubeconfigNamesFilesAndAToken) {
  folder.write("pki-ca.crt", ca());
  folder.write("token", "secret\n");
  settings.kubeconfig =
      folder.write("kubelet.conf",
                   "clusters: [{name: c, cluster: {certificate-authority: pki-ca.crt}}]\n"
                   "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
                   "users: [{name: u, user: {tokenFile: token}}]\n");
  net::credentials identity(settings);
  EXPECT_TRUE(identity.verifies());
  EXPECT_EQ(identity.authorization(), "Bearer secret");
  folder.write("token", "fresh\n");
  EXPECT_EQ(pass(identity), change::renewed);
  EXPECT_EQ(identity.authorization(), "Bearer fresh");
}

TEST_F(Credentials, AKubeconfigThatComesLaterIsPickedUpWithWhatItNames) {
  settings.kubeconfig = folder / "kubelet.conf";
  net::credentials identity(settings);
  EXPECT_EQ(identity.note(), "no kubeconfig yet");
  folder.write("kubelet.conf",
               "clusters: [{name: c, cluster: {certificate-authority: ca.crt}}]\n"
               "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n");
  EXPECT_EQ(pass(identity), change::none);
  EXPECT_EQ(identity.note(), "no CA file yet");
  folder.write("ca.crt", ca());
  EXPECT_EQ(pass(identity), change::verifiable);
}

TEST_F(Credentials, ATokenIsNotToldToAnUnverifiedServer) {
  settings.kubeconfig =
      folder.write("kubelet.conf",
                   "clusters: [{name: c, cluster: {certificate-authority: ca.crt}}]\n"
                   "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
                   "users: [{name: u, user: {token: secret}}]\n");
  net::credentials identity(settings);
  EXPECT_EQ(identity.authorization(), "");
  folder.write("ca.crt", ca());
  pass(identity);
  EXPECT_EQ(identity.authorization(), "Bearer secret");
}

TEST_F(Credentials, ABrokenKubeconfigIsNamed) {
  settings.kubeconfig = folder.write("kubelet.conf", "clusters: []\n");
  const net::credentials identity(settings);
  EXPECT_EQ(identity.note(), "kubeconfig names no current-context");
}

}  // namespace
}  // namespace kubelane
