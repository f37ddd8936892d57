// A server's ports: opening them, and waiting for those that it cannot have yet.

#include "proxy/server_impl.hpp"

#include <algorithm>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto listen_retry_period = 1s;
// Clients are refused from the moment that the process before closes its port until this looks. Who
// has it for long is not about to leave, and looking takes one per cent of a core.
constexpr auto port_wait_period = 10ms;
constexpr auto long_wait = 10min;
constexpr auto long_wait_period = 200ms;

}  // namespace

std::optional<std::string> server::impl::open_listeners(
    std::vector<inherited_listener> from_before) {
  const auto missing = adopt_listeners(std::move(from_before));
  if (options.wait_for_port) {
    awaited_ports = missing;
    return take_ports();
  }
  for (const auto& address : missing) {
    std::string failure;
    if (!listen_on(address, open_listener(address), failure)) return failure;
  }
  return std::nullopt;
}

/// Goes on with those of the process before that are still wanted; the addresses of the others.
std::vector<net::endpoint> server::impl::adopt_listeners(
    std::vector<inherited_listener> from_before) {
  using copies = net::watched_fd::copies;
  std::vector<net::endpoint> missing;
  for (const auto& address : settings.listen) {
    const auto found =
        std::find_if(from_before.begin(), from_before.end(),
                     [&](const inherited_listener& each) { return each.address == address; });
    if (found == from_before.end()) {
      missing.push_back(address);
      continue;
    }
    const bool is_ours = keeper::is_listener_name(found->name);
    if (is_ours) store.adopt_listener(found->name);
    relays.listen(found->fd, is_ours ? copies::end_with_it : copies::left_alone);
    from_before.erase(found);
  }
  for (const auto& each : from_before) release({each.fd, each.name});  // one address twice
  return missing;
}

/// False if this can never work; an address that this host does not have yet is tried again.
bool server::impl::listen_on(const net::endpoint& address, const boost::system::result<int>& opened,
                             std::string& failure) {
  if (opened) {
    using copies = net::watched_fd::copies;
    const bool stored = store.keep_listener(*opened);
    relays.listen(*opened, stored ? copies::end_with_it : copies::none);
    return true;
  }
  const auto where = net::to_string(address);
  const auto error = opened.error();
  if (error == boost::system::errc::address_not_available ||
      error == boost::system::errc::address_family_not_supported) {
    log.warn("cannot listen yet, trying again", {{"address", where}, {"cause", error.message()}});
    wanted_listeners.push_back(address);
    return true;
  }
  failure = "cannot listen on " + where + ": " + error.message();
  if (error == boost::system::errc::permission_denied)
    failure += " (SELinux, a seccomp filter or a port below 1024; not in use by another)";
  if (error == boost::system::errc::address_in_use)
    failure += " (`ss -ltnp` names who holds it; an API server or another proxy on this node?)";
  return false;
}

void server::impl::open_admin() {
  auto wanted = std::exchange(wanted_admin, {});
  for (const auto& [address, scope] : wanted) {
    const auto opened = open_listener(address);
    if (opened) {
      admin.listen(*opened, scope);
      continue;
    }
    log.warn("cannot open the admin port, trying again",
             {{"address", net::to_string(address)}, {"cause", opened.error().message()}});
    wanted_admin.emplace_back(address, scope);
  }
}

void server::impl::retry_listeners() {
  listen_retry.expires_after(listen_retry_period);
  listen_retry.async_wait([this](boost::system::error_code error) {
    if (error || stopping) return;
    for (const auto& address : std::exchange(wanted_listeners, {})) {
      std::string failure;
      if (listen_on(address, open_listener(address), failure)) continue;
      log.warn(failure);
      wanted_listeners.push_back(address);
    }
    open_admin();
    retry_listeners();
  });
}

/// Opens what is awaited, all or none: a port that is open beside another process' would take
/// clients from it before anybody has asked for that. What is wrong, if something else is.
std::optional<std::string> server::impl::take_ports() {
  auto together = open_together(awaited_ports);
  if (together.busy) {
    await_ports(*together.busy);
    return std::nullopt;
  }
  const bool waited = std::exchange(busy_port, std::nullopt).has_value();
  const auto addresses = std::exchange(awaited_ports, {});
  std::optional<std::string> wrong;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    std::string failure;
    if (listen_on(addresses[i], together.sockets[i], failure)) continue;
    wrong = failure;
    if (waited) wanted_listeners.push_back(addresses[i]);
  }
  if (!waited) return wrong;
  if (wrong)
    log.warn(*wrong);
  else
    log.info("the port is free, listening");
  open_admin();  // whoever held the one may have held the other
  tell_ready();
  return std::nullopt;
}

void server::impl::await_ports(const net::endpoint& busy) {
  if (std::exchange(busy_port, busy) != busy)
    log.warn("waiting for a port that another process holds",
             {{"address", net::to_string(busy)}, {"hint", "`ss -ltnp` names who"}});
  const auto now = health::clock::now();
  if (!waiting_since) waiting_since = now;
  const bool is_long = now - *waiting_since > long_wait;
  port_wait.expires_after(is_long ? long_wait_period : port_wait_period);
  port_wait.async_wait([this](boost::system::error_code error) {
    if (!error && !stopping) take_ports();
  });
}

std::string server::impl::describe_wait() const {
  return "waiting for " + (busy_port ? net::to_string(*busy_port) : std::string("its port")) +
         ", which another process holds";
}

}  // namespace kubelane::proxy
