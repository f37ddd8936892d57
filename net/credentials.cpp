#include "net/credentials.hpp"

#include "config/file_watch.hpp"
#include "net/credential_files.hpp"

#include <optional>

namespace kubelane::net {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr auto settle = 500ms;
constexpr auto retry_after = 1s;

verify_peer to_verify(config::verify_mode mode) {
  switch (mode) {
    case config::verify_mode::full:
      return verify_peer::full;
    case config::verify_mode::ca:
      return verify_peer::ca;
    case config::verify_mode::none:
      return verify_peer::none;
  }
  return verify_peer::full;
}

std::string trimmed(std::string text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

// What the context is made of; each part was usable when it was taken.
struct material {
  std::string ca_pem;  // empty: cannot verify
  std::string certificate_pem;
  std::string key_pem;
  std::string token;
  friend bool operator==(const material&, const material&) = default;
};

}  // namespace

struct credentials::impl {
  explicit impl(config::probe_tls wanted) : settings(std::move(wanted)) {}

  bool load();
  material choose(const credential_files& found);
  std::string choose_ca(const credential_files& found);
  boost::system::result<tls_context, std::string> make(const material& from) const;
  void add_note(const std::string& words) {
    if (note.empty()) note = words;
  }

  config::probe_tls settings;
  material used;
  std::optional<tls_context> context;
  std::string authorization;
  std::string note;
  config::file_watch watch{{}, settle};
  bool unreadable = false;
  clock::time_point tried{};
};

boost::system::result<tls_context, std::string> credentials::impl::make(
    const material& from) const {
  client_tls wanted;
  wanted.verify = from.ca_pem.empty() ? verify_peer::none : to_verify(settings.verify);
  wanted.ca_pem = from.ca_pem;
  wanted.certificate_pem = from.certificate_pem;
  wanted.key_pem = from.key_pem;
  wanted.server_name = settings.server_name;
  return tls_context::client(wanted);
}

std::string credentials::impl::choose_ca(const credential_files& found) {
  if (settings.verify == config::verify_mode::none) return {};
  const auto fresh = found.ca_pem.value_or("");
  material alone;
  alone.ca_pem = fresh;
  const auto made = make(alone);
  if (!fresh.empty() && made) return fresh;
  if (!used.ca_pem.empty()) {
    note = "CA file is missing or broken, the last good one is used";
  } else {
    if (!made) add_note("CA file: " + made.error());
    add_note("CA file is empty");
  }
  return used.ca_pem;
}

material credentials::impl::choose(const credential_files& found) {
  material result;
  result.ca_pem = choose_ca(found);
  result.token = found.token ? trimmed(*found.token) : used.token;
  material pair;
  pair.certificate_pem = found.certificate_pem.value_or("");
  pair.key_pem = found.key_pem.value_or("");
  const auto made = make(pair);
  if (found.certificate_pem && found.key_pem && made) {
    result.certificate_pem = pair.certificate_pem;
    result.key_pem = pair.key_pem;
    return result;
  }
  if (!made) add_note("client certificate: " + made.error());
  result.certificate_pem = used.certificate_pem;
  result.key_pem = used.key_pem;
  return result;
}

// True if the context or the token changed.
bool credentials::impl::load() {
  auto found = read_credential_files(settings);
  // Read again once watched: what changes from here on is seen.
  for (std::vector<std::string> watched; watched != found.paths;) {
    watched = found.paths;
    watch = config::file_watch(watched, settle);
    found = read_credential_files(settings);
  }
  note = found.note;
  unreadable = found.unreadable;
  auto fresh = choose(found);
  if (context && fresh == used) return false;
  const auto made = make(fresh);
  if (!made) {  // cannot be: each part was tried
    add_note(made.error());
    return false;
  }
  context = *made;
  used = std::move(fresh);
  const bool tell = !used.ca_pem.empty() || settings.verify == config::verify_mode::none;
  authorization = tell && !used.token.empty() ? "Bearer " + used.token : "";
  return true;
}

credentials::credentials(config::probe_tls settings)
    : impl_(std::make_unique<impl>(std::move(settings))) {
  impl_->load();
}

credentials::~credentials() = default;
credentials::credentials(credentials&&) noexcept = default;
credentials& credentials::operator=(credentials&&) noexcept = default;

credentials::change credentials::poll(clock::time_point now) {
  const bool retry = impl_->unreadable && now - impl_->tried >= retry_after;
  if (!impl_->watch.poll(now) && !retry) return change::none;
  impl_->tried = now;
  const bool verified = verifies();
  if (!impl_->load()) return change::none;
  return verifies() && !verified ? change::verifiable : change::renewed;
}

const tls_context& credentials::context() const noexcept {
  return *impl_->context;
}
bool credentials::verifies() const noexcept {
  return !impl_->used.ca_pem.empty();
}
const std::string& credentials::authorization() const noexcept {
  return impl_->authorization;
}
const std::string& credentials::server_name() const noexcept {
  return impl_->settings.server_name;
}
const std::string& credentials::note() const noexcept {
  return impl_->note;
}

}  // namespace kubelane::net
