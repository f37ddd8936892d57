// A server's life: start, serve, reload, stop.

#include "proxy/server.hpp"

#include "config/diff.hpp"
#include "config/load.hpp"
#include "config/validate.hpp"
#include "net/host_addresses.hpp"
#include "proxy/memory.hpp"
#include "proxy/server_impl.hpp"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace kubelane::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_period = 45ms;    // so often while the loop turns; 100 ms while it is idle
constexpr auto watch_period = 500ms;  // a changed file counts when it has rested for a second
constexpr auto name_refresh = 20s;
constexpr auto failed_name_refresh = 3s;
/// How long connections take to leave after SIGTERM. A node whose API port is closed is the
/// greater harm, so this is short.
constexpr auto leave_spread = 5s;
constexpr auto leave_at_most = 7s;

}  // namespace

telemetry::log_level level_of(config::log_level level) {
  switch (level) {
    case config::log_level::trace:
      return telemetry::log_level::trace;
    case config::log_level::debug:
      return telemetry::log_level::debug;
    case config::log_level::info:
      return telemetry::log_level::info;
    case config::log_level::warn:
      return telemetry::log_level::warn;
    case config::log_level::error:
      return telemetry::log_level::error;
  }
  return telemetry::log_level::info;
}

telemetry::log_format format_of(config::log_format format) {
  switch (format) {
    case config::log_format::text:
      return telemetry::log_format::text;
    case config::log_format::json:
      return telemetry::log_format::json;
  }
  return telemetry::log_format::text;
}

server::impl::impl(config::config initial, server_options given,
                   const systemd::notifier& service_manager, telemetry::log& to)
    : settings(std::move(initial)),
      options(std::move(given)),
      log(to),
      notifier(service_manager),
      store(reactor, notifier, keeper::limit_from_environment()),
      pool(settings, [this] { return uniform(random); }),
      relays(reactor, pool, settings, observer(), [this] { return uniform(random); }),
      checker(
          io, settings, checker_events(), [this] { return uniform(random); },
          [this](time_point since) { return reactor.worst_lag_since(since); }),
      resolver(io),
      admin(
          io, [this](std::string_view path) { return answer(path); },
          [this](std::exception_ptr failure) { on_bug(failure); }),
      signals(io, SIGTERM, SIGINT, SIGHUP),
      listen_retry(io),
      port_wait(io),
      leave_limit(io) {}

server::server(config::config settings, server_options options, const systemd::notifier& manager,
               telemetry::log& log)
    : impl_(std::make_unique<impl>(std::move(settings), std::move(options), manager, log)) {}

server::~server() = default;

std::optional<std::string> server::open(inheritance from_before) {
  return impl_->open(std::move(from_before));
}

server::outcome server::run() {
  return impl_->run();
}

server::outcome server::impl::run() {
  start();
  reactor.run();
  if (how_it_ends == outcome::stopped) finish();
  return how_it_ends;
}

void server::impl::start() {
  wanted_admin.emplace_back(settings.admin_listen, telemetry::admin_scope::everything);
  for (const auto& address : settings.metrics_listen)
    wanted_admin.emplace_back(address, telemetry::admin_scope::metrics_only);
  admin.restrict_metrics([this](const auto& client) { return may_ask_metrics(client); });
  open_admin();
  retry_listeners();
  reactor.on_turn(on_turn, this);
  recall_events();
  reconcile({});
  adopt_connections();
  resolve_names();
  on_signal();
  metrics.config_loaded(static_cast<double>(std::time(nullptr)));
  fallback = options.text.empty();
  metrics.config_fallback(fallback);
  configuration_is_good = !fallback;
  note_configuration(std::exchange(options.text, {}));
  log.info("serving", {{"version", KUBELANE_VERSION},
                       {"upstreams", std::to_string(settings.upstreams.size())},
                       {"pid", std::to_string(::getpid())}});
  tell_ready();
  give_memory_back();
}

void server::impl::on_signal() {
  signals.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    if (number == SIGHUP && stopping) return on_signal();
    if (number == SIGHUP)
      reload(reason_to_reload::asked);
    else
      stop();
    on_signal();
  });
}

/// At the end of each turn. The loop turns at least every 100 ms, so what has to be done now and
/// then needs no timers of its own.
[[gnu::hot]] void server::impl::on_turn(void* self) {
  auto& it = *static_cast<impl*>(self);
  if (it.pool.has_effects()) it.apply_effects();
  const auto now = it.reactor.now();
  if (now - it.last_tick < tick_period) return;
  it.last_tick = now;
  it.on_tick(now);
  it.apply_effects();
}

void server::impl::on_tick(time_point now) {
  pool.tick(now);
  note_whole_state();
  watch_store();
  watch_events();
  metrics.step();
  log.tell_rest();
  if (owes_ready) tell_ready();
  tell_status(now);
  resolve_names();
  if (const auto period = notifier.watchdog_period(); period && now >= watchdog_due) {
    notifier.watchdog();
    watchdog_due = now + *period;
  }
  if (now - last_watch >= watch_period) {
    last_watch = now;
    if (!stopping && options.watch.poll(now)) reload(reason_to_reload::file_changed);
  }
  if (stopping && relays.connections() == 0) reactor.stop();
}

void server::impl::reload(reason_to_reload why) {
  notifier.reloading();
  const auto loaded = config::load_file(options.config_path, net::host_addresses());
  if (!loaded) {
    for (const auto& one : loaded.error().list)
      log.error(config::describe(options.config_path, one, config::severity::error));
    log.error("configuration rejected, the old one stays",
              {{"reason", why == reason_to_reload::asked ? "SIGHUP" : "file changed"},
               {"problems", std::to_string(loaded.error().list.size())}});
    metrics.config_reload("rejected");
    configuration_is_good = false;
  } else {
    const auto changes = config::diff(settings, loaded->settings);
    // Whoever asks is answered; a file that is written again as it was, day after day, is no event.
    const bool is_news =
        why == reason_to_reload::asked || !changes.empty() || !configuration_is_good;
    configuration_is_good = true;
    if (is_news)
      for (const auto& one : loaded->warnings)
        log.warn(config::describe(options.config_path, one, config::severity::warning));
    // Not before a start has shown that it can listen there.
    fallback = false;
    if (take(loaded->settings, changes)) note_configuration(loaded->text);
    log.write(is_news ? telemetry::log_level::info : telemetry::log_level::debug,
              "configuration taken on",
              {{"added", std::to_string(changes.added.size())},
               {"removed", std::to_string(changes.removed.size())},
               {"kept", std::to_string(changes.kept.size())}});
    metrics.config_fallback(false);
    metrics.config_reload("accepted");
    metrics.config_loaded(static_cast<double>(std::time(nullptr)));
  }
  tell_ready();
  give_memory_back();
}

/// False if a part of it waits for a restart.
bool server::impl::take(config::config next, const config::changes& changes) {
  for (const auto& what : changes.restart)
    log.warn("takes effect at the next restart", {{"setting", what}});
  for (const auto& what : changes.live) log.info("setting changed", {{"setting", what}});
  settings = config::keep_listeners(settings, std::move(next));
  refused_metrics.clear();
  std::erase_if(unanswered_names, [this](const auto& name) {
    return std::none_of(settings.upstreams.begin(), settings.upstreams.end(),
                        [&](const auto& each) { return each.address.host == name.first; });
  });
  if (unanswered_names.empty()) inherited_upstreams.clear();
  keep_until_answered();
  log.set(options.level.value_or(level_of(settings.log.level)), format_of(settings.log.format));
  pool.configure(settings);
  relays.configure(settings);
  checker.configure(settings);
  reconcile({});
  resolve_names();
  return changes.restart.empty();
}

/// Starts the look-ups that are due; each gives its answer to `reconcile`.
void server::impl::resolve_names() {
  const auto now = health::clock::now();
  for (const auto& upstream : settings.upstreams) {
    const auto& host = upstream.address.host;
    auto [due, added] = next_lookup.try_emplace(host, now);
    if (now < due->second) continue;
    due->second = time_point::max();
    if (net::parse_endpoint(net::to_string(upstream.address), 0)) continue;  // an address
    resolver.lookup(host, [this, host](net::lookup_result result) {
      const bool failed = !result || result->empty();
      next_lookup[host] = health::clock::now() + (failed ? failed_name_refresh : name_refresh);
      lookup answer{host, std::nullopt};
      if (!failed) answer.addresses = *result;
      if (!failed) note_lookup(host);
      reconcile({answer});
    });
  }
}

void server::impl::reconcile(const std::vector<lookup>& lookups) {
  const own_listeners own{config::all_listeners(settings), net::host_addresses()};
  auto members = resolve_members(settings.upstreams, lookups, own, known_addresses);
  known_addresses = std::move(members.known);
  if (members.warnings != last_warnings)
    for (const auto& words : members.warnings) log.warn(words);
  last_warnings = std::move(members.warnings);
  add_inherited(members.wanted);
  pool.reconcile(members.wanted, health::clock::now());
  for (const auto& one : pool.status(reactor.now()).upstreams) {
    names[one.id] = one.name;
    if (one.removed || !one.address)
      checker.remove(key_of(one.id));
    else
      checker.add(key_of(one.id), *one.address);
  }
}

void server::impl::stop() {
  if (std::exchange(stopping, true)) {
    reactor.stop();
    return;
  }
  if (store.is_active()) return hand_over();
  notifier.stopping("letting connections leave");
  log.info("stopping", {{"connections", std::to_string(relays.connections())}});
  relays.stop_accepting();
  relays.close_all(leave_spread);
  leave_limit.expires_after(leave_at_most);
  leave_limit.async_wait([this](boost::system::error_code error) {
    if (!error) reactor.stop();
  });
}

/// Nothing may be running when the parts are destroyed.
void server::impl::finish() {
  checker.stop();
  admin.stop();
  signals.cancel();
  listen_retry.cancel();
  port_wait.cancel();
  leave_limit.cancel();
  reactor.on_turn(nullptr);
  const auto limit = health::clock::now() + leave_at_most - leave_spread;
  while (!checker.stopped() && health::clock::now() < limit) reactor.turn(10ms);
  for (int turn = 0; turn < 10; ++turn) reactor.turn(1ms);  // what was cancelled ends
  log.info("stopped");
}

}  // namespace kubelane::proxy
