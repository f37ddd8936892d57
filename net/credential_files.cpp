#include "net/credential_files.hpp"

#include "config/kubeconfig.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kubelane::net {
namespace {

constexpr std::streamsize largest_file = 1024 * 1024;

class reader {
 public:
  explicit reader(const config::probe_tls& settings)
      : settings_(settings), verifies_(settings.verify != config::verify_mode::none) {}

  credential_files read_all() {
    if (!settings_.kubeconfig.empty()) {
      read_kubeconfig();
    } else {
      found_.ca_pem = verifies_ ? read("CA file", settings_.ca_file) : "";
      found_.certificate_pem = read("client certificate", settings_.client_cert_file);
      found_.key_pem = read("client key", settings_.client_key_file);
      found_.token = "";
    }
    return std::move(found_);
  }

 private:
  // An empty path names nothing to read.
  std::optional<std::string> read(const std::string& what, const std::string& path) {
    if (path.empty()) return "";
    found_.paths.push_back(path);
    errno = 0;
    std::ifstream file(path, std::ios::binary);
    std::string text(file ? largest_file : 0, '\0');
    if (file) file.read(text.data(), largest_file);
    const int error = errno;
    if (file || file.eof()) {
      text.resize(static_cast<std::size_t>(file.gcount()));
      return text;
    }
    found_.unreadable = error != ENOENT;
    note(error == ENOENT ? "no " + what + " yet"
                         : what + " is unreadable: " + std::strerror(error));
    return std::nullopt;
  }

  // The text, or what the file holds.
  std::optional<std::string> take(const std::string& what, const std::string& text,
                                  const std::string& file) {
    return file.empty() ? text : read(what, file);
  }

  void read_kubeconfig() {
    const auto text = read("kubeconfig", settings_.kubeconfig);
    if (!text) return;
    const auto folder = std::filesystem::path(settings_.kubeconfig).parent_path();
    const auto parsed = config::parse_kubeconfig(*text, folder);
    if (!parsed) return note("kubeconfig " + parsed.error());
    found_.ca_pem = verifies_ ? take("CA file", parsed->ca_pem, parsed->ca_file) : "";
    found_.certificate_pem =
        take("client certificate", parsed->certificate_pem, parsed->certificate_file);
    found_.key_pem = take("client key", parsed->key_pem, parsed->key_file);
    found_.token = take("token file", parsed->token, parsed->token_file);
    if (verifies_ && found_.ca_pem == "") note("kubeconfig names no CA");
    if (parsed->runs_a_command) note("kubeconfig runs a command for credentials: not supported");
  }

  void note(const std::string& words) {
    if (found_.note.empty()) found_.note = words;
  }

  const config::probe_tls& settings_;
  const bool verifies_;
  credential_files found_;
};

}  // namespace

credential_files read_credential_files(const config::probe_tls& settings) {
  return reader(settings).read_all();
}

}  // namespace kubelane::net
