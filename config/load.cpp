#include "config/load.hpp"

#include "config/address.hpp"
#include "config/section.hpp"
#include "config/validate.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace kubelane::config {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_listeners = 64;
constexpr std::size_t most_ranges = 64;
constexpr std::size_t most_upstreams = 1000;

/// A label in metrics and log lines: without blanks, quotes and `=`, and without the `/` that
/// separates a DNS name's addresses.
bool is_label(std::string_view text) {
  constexpr std::string_view marks = "._-:[]%";
  const auto allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= 63 && std::all_of(text.begin(), text.end(), allowed);
}

enum class may_be_empty { no, yes };

void read_label(section& in, std::string_view key, std::string& into, may_be_empty empty) {
  const auto* found = in.scalar(key, "a name");
  if (found == nullptr) return;
  if (is_label(found->text) || (found->text.empty() && empty == may_be_empty::yes)) {
    into = found->text;
    return;
  }
  in.complain(key, found->at,
              quote(found->text) + " is not 1 to 63 letters, digits or any of . _ - : [ ] %");
}

/// An address that is wrong is read as port 0, so that the rules over all of them pass it by.
net::endpoint read_listener(const node& from, const std::string& path, reading& out) {
  if (from.is != node::kind::scalar) {
    out.problems.push_back(
        {from.at, path, "is " + std::string(kind_of(from)) + ", not an address with a port"});
    return {};
  }
  const auto seen = parse_listen_address(from.text);
  if (seen) return *seen;
  out.problems.push_back({from.at, path, quote(from.text) + ": " + seen.error().reason});
  return {};
}

/// One address, or a list of them.
void read_listeners(section& in, std::vector<net::endpoint>& into, reading& out) {
  const auto* found = in.value("listen");
  if (found == nullptr) return;
  if (found->is == node::kind::scalar) {
    into = {read_listener(*found, in.path_of("listen"), out)};
    return;
  }
  const auto* items = in.list("listen", most_listeners);
  if (items == nullptr) return;
  into.clear();
  for (const auto& item : items->items) {
    const auto path = in.path_of("listen") + "[" + std::to_string(into.size()) + "]";
    out.written.emplace(path, item.at);
    into.push_back(read_listener(item, path, out));
  }
}

void read_range(const node& from, const std::string& path, std::vector<net::subnet>& into,
                reading& out) {
  if (from.is != node::kind::scalar) {
    out.problems.push_back(
        {from.at, path, "is " + std::string(kind_of(from)) + ", not a range of addresses"});
    return;
  }
  const auto seen = parse_subnet(from.text);
  if (seen)
    into.push_back(*seen);
  else
    out.problems.push_back({from.at, path, quote(from.text) + ": " + seen.error().reason});
}

/// One range of addresses, or a list of them.
void read_ranges(section& in, std::string_view key, std::vector<net::subnet>& into, reading& out) {
  const auto* found = in.value(key);
  if (found == nullptr) return;
  if (found->is == node::kind::scalar) return read_range(*found, in.path_of(key), into, out);
  const auto* items = in.list(key, most_ranges);
  if (items == nullptr) return;
  std::size_t count = 0;
  for (const auto& item : items->items)
    read_range(item, in.path_of(key) + "[" + std::to_string(count++) + "]", into, out);
}

void read_server_name(section& in, std::string& into) {
  const auto* found = in.scalar("server_name", "a name");
  if (found == nullptr) return;
  boost::system::error_code error;
  boost::asio::ip::make_address(found->text, error);
  if (!error || found->text.empty() || is_dns_name(found->text))
    into = found->text;
  else
    in.complain("server_name", found->at,
                quote(found->text) + " is neither a DNS name nor an IP address");
}

void read_tls(section in, probe_tls& into) {
  in.choice("verify", into.verify, {verify_mode::full, verify_mode::ca, verify_mode::none});
  in.text("ca_file", into.ca_file);
  read_server_name(in, into.server_name);
  in.text("client_cert_file", into.client_cert_file);
  in.text("client_key_file", into.client_key_file);
  in.text("kubeconfig", into.kubeconfig);
  in.refuse_unknown();
}

void read_interval(section& in, std::optional<milliseconds>& into) {
  const auto* found = in.scalar("interval", "auto or a duration");
  if (found == nullptr) return;
  if (found->text == "auto") {
    into.reset();
    return;
  }
  milliseconds seen{0};
  in.duration("interval", seen, {100ms, 1h});
  if (seen > 0ms) into = seen;
}

void read_health(section in, struct health& into) {
  in.choice("mode", into.mode, {probe_mode::readyz, probe_mode::tcp});
  in.text("path", into.path);
  read_interval(in, into.interval);
  in.duration("timeout", into.timeout, {10ms, 10s});
  in.number("fall", into.fall, {1, 10});
  in.number("rise", into.rise, {1, 10});
  in.duration("slow_start", into.slow_start, {0ms, 10min});
  in.duration("hold_down", into.hold_down, {0ms, 10min});
  read_tls(in.child("tls"), into.tls);
  in.refuse_unknown();
}

void read_dial(section in, struct dial& into) {
  in.duration("attempt_timeout", into.attempt_timeout, {50ms, 60s});
  in.duration("hedge_after", into.hedge_after, {10ms, 60s});
  in.duration("first_answer", into.first_answer, {10ms, 60s});
  in.duration("total_timeout", into.total_timeout, {100ms, 120s});
  in.refuse_unknown();
}

void read_failover(section in, struct failover& into) {
  in.choice("mode", into.mode, {failover_mode::act, failover_mode::observe});
  in.duration("suspect_after", into.suspect_after, {50ms, 60s});
  in.duration("reset_after", into.reset_after, {500ms, 120s});
  in.refuse_unknown();
}

void read_drain(section in, struct drain& into) {
  in.duration("etcd", into.etcd, {0ms, 1h});
  in.duration("shutdown", into.shutdown, {0ms, 1h});
  in.duration("other", into.other, {0ms, 1h});
  in.duration("removed", into.removed, {0ms, 1h});
  in.duration("busy", into.busy, {0ms, 1h});
  in.refuse_unknown();
}

void read_address(section& in, upstream& into) {
  const auto* found = in.scalar("address", "an address");
  if (found == nullptr) {
    if (!in.has("address")) in.complain("address", into.at, "is missing");
    return;
  }
  const auto seen = parse_upstream_address(found->text);
  if (!seen) {
    in.complain("address", found->at, quote(found->text) + ": " + seen.error().reason);
    return;
  }
  into.address = *seen;
  const bool bare_ipv6 = !found->text.starts_with('[') && seen->host.find(':') != std::string::npos;
  if (bare_ipv6 && found->text.ends_with(":6443"))
    in.warn("address", found->at,
            quote(found->text) + " has no port in this form; with one, write " +
                quote("[" + found->text.substr(0, found->text.size() - 5) + "]:6443"));
}

void read_upstream(section in, upstream& into) {
  read_address(in, into);
  if (!into.address.host.empty()) into.name = net::to_string(into.address);
  read_label(in, "name", into.name, may_be_empty::no);
  read_label(in, "zone", into.zone, may_be_empty::yes);
  in.refuse_unknown();
}

void read_upstreams(section& in, std::vector<upstream>& into, reading& out) {
  const auto* items = in.list("upstreams", most_upstreams);
  if (items == nullptr) return;
  for (const auto& item : items->items) {
    const auto path = "upstreams[" + std::to_string(into.size()) + "]";
    out.written.emplace(path, item.at);
    upstream next;
    next.at = item.at;
    if (item.is == node::kind::mapping)
      read_upstream(section(&item, path, out), next);
    else
      out.problems.push_back(
          {item.at, path,
           "is " + std::string(kind_of(item)) + ", not a mapping: write {address: 10.0.0.11}"});
    into.push_back(std::move(next));
  }
}

void read_version(section& in) {
  const auto* found = in.scalar("version", "a whole number");
  if (found == nullptr || (found->text == "1" && !found->quoted)) return;
  in.complain("version", found->at,
              quote(found->text) + " is not a version this kubelane reads: write 1");
}

/// A section with a single key or two of its own.
void read_small_sections(section& in, config& into, reading& out) {
  auto admin = in.child("admin");
  if (const auto* found = admin.value("listen"))
    into.admin_listen = read_listener(*found, "admin.listen", out);
  admin.refuse_unknown();
  auto metrics = in.child("metrics");
  read_listeners(metrics, into.metrics_listen, out);
  read_ranges(metrics, "allow", into.metrics_allow, out);
  metrics.refuse_unknown();
  auto relay = in.child("relay");
  relay.duration("half_closed_timeout", into.relay.half_closed_timeout, {1s, 24h});
  relay.refuse_unknown();
  auto cluster = in.child("cluster");
  cluster.number("nodes", into.cluster.nodes, {1, 100'000});
  cluster.choice("etcd", into.cluster.etcd, {etcd_topology::stacked, etcd_topology::external});
  cluster.refuse_unknown();
  auto limits = in.child("limits");
  limits.number("connections", into.limits.connections, {1, 1'000'000});
  limits.refuse_unknown();
  auto log = in.child("log");
  log.choice(
      "level", into.log.level,
      {log_level::trace, log_level::debug, log_level::info, log_level::warn, log_level::error});
  log.choice("format", into.log.format, {log_format::text, log_format::json});
  log.refuse_unknown();
}

config read(const node& root, reading& out) {
  config result;
  section in(&root, "", out);
  read_version(in);
  read_listeners(in, result.listen, out);
  read_upstreams(in, result.upstreams, out);
  read_label(in, "zone", result.zone, may_be_empty::yes);
  in.choice(
      "balance", result.balance,
      {balance_policy::round_robin, balance_policy::random, balance_policy::least_connections});
  read_health(in.child("health"), result.health);
  read_dial(in.child("dial"), result.dial);
  read_failover(in.child("failover"), result.failover);
  read_drain(in.child("drain"), result.drain);
  read_small_sections(in, result, out);
  in.refuse("discovery", "is not supported yet: leave this section out");
  in.refuse("rebalance", "is not supported yet: leave this section out");
  in.refuse_unknown();
  return result;
}

void append(std::vector<problem>& to, const std::vector<problem>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

bool is_about(const std::vector<problem>& list, std::string_view path) {
  return std::any_of(list.begin(), list.end(),
                     [path](const problem& each) { return each.path == path; });
}

void sort_by_place(std::vector<problem>& list) {
  std::stable_sort(list.begin(), list.end(), [](const problem& a, const problem& b) {
    return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
  });
}

problems about_file(std::string message) {
  return {{{{1, 1}, "file", std::move(message)}}, {}};
}

problems about_file(std::string what, int error) {
  return about_file(std::move(what) + ": " + ::strerror(error));
}

struct descriptor {
  int fd;
  explicit descriptor(int opened) : fd(opened) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

/// O_NONBLOCK: opening a FIFO nobody writes to must not hang.
boost::system::result<std::string, problems> read_file(const std::string& path) {
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.fd < 0) return about_file("cannot be opened", errno);
  struct stat about {};
  if (::fstat(file.fd, &about) != 0) return about_file("cannot be read", errno);
  if (S_ISDIR(about.st_mode)) return about_file("is a directory, not a file");
  if (!S_ISREG(about.st_mode)) return about_file("is not a regular file");
  std::string text(largest_document + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto count = ::read(file.fd, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return about_file("cannot be read", errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace

load_result load(std::string_view yaml,
                 const std::vector<boost::asio::ip::address>& host_addresses) {
  auto document = parse(yaml);
  problems all{std::move(document.problems), {}};
  if (document.root && document.root->is != node::kind::mapping) {
    all.list.push_back({document.root->at, "file",
                        "is " + std::string(kind_of(*document.root)) + ", not a mapping of keys"});
    document.root.reset();
  }
  if (!document.root) return all;
  reading read_so_far;
  loaded result;
  result.settings = read(*document.root, read_so_far);
  auto found = validate(result.settings, read_so_far.written, host_addresses);
  append(all.list, read_so_far.problems);
  // A value that could not be read breaks rules only because it is missing.
  std::erase_if(found.list, [&](const problem& each) { return is_about(all.list, each.path); });
  append(all.list, found.list);
  all.warnings = std::move(read_so_far.warnings);
  append(all.warnings, found.warnings);
  sort_by_place(all.list);
  sort_by_place(all.warnings);
  if (!all.list.empty()) return all;
  merge_same_addresses(result.settings);
  result.warnings = std::move(all.warnings);
  return result;
}

load_result load_file(const std::string& path,
                      const std::vector<boost::asio::ip::address>& host_addresses) {
  const auto text = read_file(path);
  if (!text) return text.error();
  auto result = load(*text, host_addresses);
  if (result) result->text = std::move(*text);
  return result;
}

}  // namespace kubelane::config
