// What goes to a support engineer, and what must not.

#include "proxy/commands/capture.hpp"
#include "serving.hpp"
#include "tests/support/base64.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

/// Every file of the bundle, one after the other.
std::string content(const std::string& bundle) {
  return commands::capture({"tar", "-xzOf", bundle}, 10s, 1UL << 26).output;
}

std::string files(const std::string& bundle) {
  return commands::capture({"tar", "-tzf", bundle}, 10s, 1UL << 20).output;
}

std::string body_of(const std::string& pem) {
  const auto begin = pem.find('\n') + 1;
  return pem.substr(begin, pem.find("\n-----END") - begin);
}

/// Any 24 characters in a row of `secret` that are in `text`.
bool has_part_of(const std::string& text, const std::string& secret) {
  constexpr std::size_t length = 24;
  for (std::size_t at = 0; at + length <= secret.size(); at += length)
    if (text.find(secret.substr(at, length)) != std::string::npos) return true;
  return false;
}

/// A kubelane with a client certificate, and a careless comment in its configuration.
struct careless : world {
  careless() {
    const auto& identity = test_identity();
    key = identity.key_pem;
    folder.write("client.crt", identity.certificate_pem);
    folder.write("client.key", key);
    auto text = configuration();
    const auto files = "client_cert_file: " + (folder / "client.crt") +
                       ", client_key_file: " + (folder / "client.key") + ", ";
    text.insert(text.find("ca_file:"), files);
    text +=
        "# token: " + token + "\n# " + base64(key) + "\n# " + base64("kubeconfig " + key) + '\n';
    std::string commented;
    for (const char c : key) commented += c == '\n' ? std::string("\n# ") : std::string(1, c);
    path = write(text + "# " + commented + "\n");
  }

  std::string key;
  std::string token = "s3cr3t-t0ken-of-an-admin";
  std::string path;
};

TEST(Bundle, HasWhatIsNeededAndNothingSecret) {
  const careless it;
  binary run({"run", "--config", it.path}, {"STATE_DIRECTORY=" + (it.folder / "")});
  for (const char* name : {"cp1", "cp2", "cp3"})
    ASSERT_TRUE(becomes(it.admin, name, "ready")) << run.error();
  const auto file = it.folder / "support.tar.gz";
  binary bundle({"status", "--bundle", file, "--admin", "127.0.0.1:" + std::to_string(it.admin)});
  ASSERT_EQ(bundle.wait(60s), 0) << bundle.error();
  EXPECT_NE(bundle.out().find(file), std::string::npos) << bundle.out();

  const auto names = files(file);
  for (const char* name : {"NOTES.txt", "version.txt", "status.json", "status.txt", "events.json",
                           "metrics.txt", "readyz.txt", "config.yaml", "check.txt", "limits.txt"})
    EXPECT_NE(names.find(std::string("kubelane-bundle/") + name), std::string::npos) << name;
  const auto all = content(file);
  for (const char* part : {"\"headline\"", "kubelane_upstream_state", "[+]cp1 ready", "upstreams:",
                           "Max open files", "good, 3 upstreams", "client_key_file: /"})
    EXPECT_NE(all.find(part), std::string::npos) << part;

  EXPECT_EQ(all.find("PRIVATE KEY"), std::string::npos);
  EXPECT_EQ(all.find(it.token), std::string::npos);
  auto body = body_of(it.key);
  EXPECT_FALSE(has_part_of(all, body.substr(0, body.find('\n'))));
  body.erase(std::remove(body.begin(), body.end(), '\n'), body.end());
  EXPECT_FALSE(has_part_of(all, body));
  EXPECT_FALSE(has_part_of(all, base64(it.key)));
  EXPECT_FALSE(has_part_of(all, base64("kubeconfig " + it.key)));
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST(Bundle, WhereNobodyAnswersItSaysSoInside) {
  const temporary_folder folder;
  const auto file = folder / "support.tar.gz";
  const auto nobody = "127.0.0.1:" + std::to_string(free_port());
  binary bundle({"status", "--bundle", file, "--admin", nobody});
  ASSERT_EQ(bundle.wait(60s), 0) << bundle.error();
  EXPECT_NE(content(file).find("status.json: no answer from " + nobody), std::string::npos);
  EXPECT_NE(files(file).find("kernel.txt"), std::string::npos) << files(file);
}

/// Any user's program at the admin port: it answers everything with `body`.
class impostor {
 public:
  impostor(int port, const std::string& body)
      : answer_(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
            "Content-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body) {
    const int yes = 1;
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listens = ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
              ::listen(fd_, 16) == 0;
    if (listens) thread_ = std::thread([this] { serve(); });
  }
  ~impostor() {
    ::shutdown(fd_, SHUT_RDWR);  // ends accept
    if (thread_.joinable()) thread_.join();
    ::close(fd_);
  }
  impostor(const impostor&) = delete;
  impostor& operator=(const impostor&) = delete;

  bool listens = false;

 private:
  void serve() {
    for (int client = 0; (client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) {
      std::array<char, 4096> request{};
      if (::recv(client, request.data(), request.size(), 0) > 0)
        ::send(client, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      ::close(client);
    }
  }

  std::string answer_;
  int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread thread_;
};

/// The content of a bundle made while somebody says to be process `pid` with `config`.
std::string bundle_of_impostor(const temporary_folder& folder, const std::string& pid,
                               const std::string& config) {
  const int port = free_port();
  const impostor it(port, "{\"pid\":" + pid + ",\"config\":\"" + config + "\"}");
  EXPECT_TRUE(it.listens);
  const auto file = folder / "support.tar.gz";
  binary bundle({"status", "--bundle", file, "--admin", "127.0.0.1:" + std::to_string(port)});
  EXPECT_EQ(bundle.wait(60s), 0) << bundle.error();
  return content(file);
}

TEST(Bundle, WhoeverAnswersDoesNotChooseWhatIsRead) {
  const temporary_folder folder;
  folder.write("shadow", "only-for-root");
  const auto all = bundle_of_impostor(folder, std::to_string(::getpid()), folder / "shadow");
  EXPECT_EQ(all.find("only-for-root"), std::string::npos);
  EXPECT_NE(all.find("which is no kubelane of root or of this user; this is /etc/kubelane/"),
            std::string::npos);
}

TEST(Bundle, WhoeverNamesARealKubelaneDoesNotChooseEither) {
  const world it;
  binary run({"run", "--config", it.write(it.configuration())});
  ASSERT_TRUE(answers(it.admin, "/healthz", 200)) << run.error();
  it.folder.write("shadow", "only-for-root");
  const auto pid = std::to_string(run.pid());
  const auto all = bundle_of_impostor(it.folder, pid, it.folder / "shadow");
  EXPECT_EQ(all.find("only-for-root"), std::string::npos);
  EXPECT_NE(all.find("which process " + pid + " was not started with"), std::string::npos);
}

TEST(Bundle, MayHaveAColonInItsNameAndReplacesALink) {
  const temporary_folder folder;
  folder.write("other", "untouched");
  // Without a folder: after a slash tar does not take what is before a colon for a host.
  const std::string name = "support-10:15.tar.gz";
  const auto file = folder / name;
  std::filesystem::create_symlink(folder / "other", file);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder / "");
  binary bundle(
      {"status", "--bundle", name, "--admin", "127.0.0.1:" + std::to_string(free_port())});
  std::filesystem::current_path(before);
  ASSERT_EQ(bundle.wait(60s), 0) << bundle.error();
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(file)));
  std::ifstream other(folder / "other");
  std::string text;
  std::getline(other, text);
  EXPECT_EQ(text, "untouched");
  EXPECT_NE(files(file).find("kernel.txt"), std::string::npos) << files(file);
}

TEST(Bundle, WhereItCannotBeWrittenItSaysWhy) {
  const temporary_folder folder;
  binary bundle({"status", "--bundle", folder / "missing/support.tar.gz", "--admin",
                 "127.0.0.1:" + std::to_string(free_port())});
  EXPECT_EQ(bundle.wait(60s), 1);
  EXPECT_NE(bundle.error().find("cannot write " + (folder / "missing/support.tar.gz")),
            std::string::npos)
      << bundle.error();
}

TEST(Bundle, ExcludesOtherKindsOfOutput) {
  binary bundle({"status", "--bundle", "x.tar.gz", "--json"});
  EXPECT_EQ(bundle.wait(), 64);
}

}  // namespace
}  // namespace kubelane::test
