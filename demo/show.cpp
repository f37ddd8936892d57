#include "demo/show.hpp"

#include "demo/certificates.hpp"
#include "demo/client.hpp"
#include "demo/process.hpp"
#include "net/tls.hpp"
#include "proxy/commands/admin_client.hpp"
#include "proxy/commands/status_table.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>

#include <array>
#include <csignal>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace kubelane::demo {
namespace {

namespace asio = boost::asio;
using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr std::size_t server_count = 3;
constexpr int held_clients = 4;
constexpr auto redraw_period = 500ms;
constexpr auto ready_limit = 40s;

struct result {
  std::string fault;
  client_figures figures;
};

std::string name_of(std::size_t server) {
  return "cp" + std::to_string(server + 1);
}

std::string results_table(const std::vector<result>& results) {
  std::ostringstream text;
  text << std::left << std::setw(44) << "FAULT" << std::right << std::setw(10) << "REQUESTS"
       << std::setw(8) << "LOST" << std::setw(13) << "RECONNECTS" << std::setw(13) << "LONGEST GAP"
       << '\n';
  for (const auto& [fault, figures] : results)
    text << std::left << std::setw(44) << fault << std::right << std::setw(10) << figures.requests
         << std::setw(8) << figures.failures << std::setw(13) << figures.reconnects << std::setw(10)
         << figures.longest_gap.count() << " ms\n";
  return text.str();
}

/// The stage: all processes, the clients, and what is shown of them.
class stage {
 public:
  stage(std::ostream& out, screen on) : out_(out), screen_(on) {
    out_ << "making certificates, starting three API servers and kubelane" << std::endl;
    write_identities();
    for (std::size_t i = 0; i < server_count; ++i) start_server(i);
    write_configuration();
    proxy_ = process({"run", "--config", files_.path("config.yaml")}, files_.path("proxy.log"));
    wait_until_ready("starting three API servers and kubelane");
    net::client_tls tls;
    tls.ca_pem = authority_.certificate_pem();
    tls.server_name = "kubernetes.default.svc";
    auto context = net::tls_context::client(tls);
    if (!context) throw std::runtime_error("the clients' TLS: " + context.error());
    client_.emplace(io_, port(server_count), *context, held_clients);
  }

  ~stage() {
    if (client_) client_->stop();
    io_.run_for(100ms);
  }

  /// Runs one fault: `begin`, then some time, then `end`, until every server is ready again.
  template <typename Begin, typename End>
  void fault(const std::string& name, milliseconds duration, Begin begin, End end) {
    current_ = name;
    say("fault: " + name);
    client_->take();  // what was before is not this fault's
    begin();
    pass(duration);
    end();
    say("  over, waiting until all are ready again");
    wait_until_ready(name + ": over, waiting until all are ready again");
    results_.push_back({name, client_->take()});
    say("  " + summary(results_.back().figures));
    current_.clear();
  }

  void calm(milliseconds duration) {
    fault(
        "none", duration, [] {}, [] {});
  }

  void start_server(std::size_t i) {
    servers_[i] = process({"demo", "--serve", name_of(i), "--port", std::to_string(ports_[i]),
                           "--directory", files_.path("")},
                          files_.path(name_of(i) + ".log"));
  }

  process& server(std::size_t i) { return servers_[i]; }
  process& proxy() { return proxy_; }
  const std::vector<result>& results() const { return results_; }

 private:
  net::endpoint port(std::size_t i) const {
    return *net::parse_endpoint("127.0.0.1:" + std::to_string(ports_[i]), 0);
  }

  void write_identities() {
    files_.write("ca.crt", authority_.certificate_pem());
    for (std::size_t i = 0; i < server_count; ++i) {
      const auto identity = authority_.issue(apiserver_certificate(name_of(i)));
      files_.write(name_of(i) + ".crt", identity.certificate_pem);
      files_.write(name_of(i) + ".key", identity.key_pem);
    }
  }

  void write_configuration() {
    std::string text = "version: 1\nlisten: " + net::to_string(port(server_count)) +
                       "\nadmin: {listen: \"" + net::to_string(port(server_count + 1)) +
                       "\"}\nupstreams:\n";
    for (std::size_t i = 0; i < server_count; ++i)
      text += "  - {name: " + name_of(i) + ", address: \"" + net::to_string(port(i)) + "\"}\n";
    text += "health: {tls: {ca_file: " + files_.path("ca.crt") + "}}\n";
    files_.write("config.yaml", text);
  }

  /// The body of /status; empty while there is no answer.
  std::string status() const {
    const auto answer = commands::ask_admin(port(server_count + 1), "/status", 500ms);
    return answer && answer->status == 200 ? answer->body : "";
  }

  static bool all_ready(const std::string& status) {
    if (status.empty()) return false;
    const auto document = boost::json::parse(status);
    for (const auto& one : document.at("upstreams").as_array())
      if (one.at("state").as_string() != "ready") return false;
    return true;
  }

  void wait_until_ready(const std::string& what) {
    current_ = what;
    const auto limit = clock::now() + ready_limit;
    while (!all_ready(status())) {
      if (clock::now() > limit || !proxy_.running())
        throw std::runtime_error("not every API server became ready; kubelane's log is above");
      pass(200ms);
    }
  }

  /// Lets the clients work, and keeps the table fresh.
  void pass(milliseconds duration) {
    const auto until = clock::now() + duration;
    while (clock::now() < until) {
      io_.restart();
      io_.run_until(std::min(until, clock::now() + 50ms));
      if (io_.stopped()) std::this_thread::sleep_for(10ms);  // no client yet
      if (clock::now() >= next_redraw_) redraw();
    }
  }

  void redraw() {
    next_redraw_ = clock::now() + redraw_period;
    if (screen_ == screen::plain) return;
    const auto body = status();
    std::string text;
    if (!body.empty()) text += commands::status_table(body, commands::colour::on) + '\n';
    if (!results_.empty()) text += results_table(results_) + '\n';
    draw(text + "now: " + (current_.empty() ? "-" : current_) + '\n');
  }

  /// Over what was there, line by line: clearing it first would flicker.
  void draw(std::string_view text) {
    std::string frame = std::exchange(drawn_, true) ? "\x1b[H" : "\x1b[2J\x1b[H";
    for (const char c : text) frame += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    out_ << frame << "\x1b[J" << std::flush;
  }

  void say(const std::string& line) {
    if (screen_ == screen::plain) out_ << line << std::endl;
  }

  static std::string summary(const client_figures& figures) {
    return std::to_string(figures.requests) + " requests, " + std::to_string(figures.failures) +
           " lost, longest gap " + std::to_string(figures.longest_gap.count()) + " ms";
  }

  std::ostream& out_;
  screen screen_;
  asio::io_context io_{1};
  scratch_directory files_;
  authority authority_;
  std::vector<int> ports_ = free_ports(server_count + 2);  // servers, proxy, admin
  std::array<process, server_count> servers_;
  process proxy_;
  std::optional<client> client_;
  std::vector<result> results_;
  std::string current_;
  bool drawn_ = false;
  clock::time_point next_redraw_{};
};

void run_faults(stage& on) {
  on.calm(3s);
  on.fault(
      "cp1 killed (SIGKILL)", 4s, [&] { on.server(0).kill(); }, [&] { on.start_server(0); });
  on.fault(
      "cp2 frozen (SIGSTOP)", 6s, [&] { on.server(1).signal(SIGSTOP); },
      [&] { on.server(1).signal(SIGCONT); });
  on.fault(
      "cp3 lost its etcd (/readyz 500)", 7s, [&] { on.server(2).signal(SIGUSR1); },
      [&] { on.server(2).signal(SIGUSR2); });
  on.fault(
      "cp1 shuts down (SIGTERM, serves on 3 s)", 5s, [&] { on.server(0).signal(SIGTERM); },
      [&] {
        on.server(0).finish();
        on.start_server(0);
      });
  on.fault(
      "cp2 and cp3 killed at once", 4s,
      [&] {
        on.server(1).kill();
        on.server(2).kill();
      },
      [&] {
        on.start_server(1);
        on.start_server(2);
      });
  on.fault(
      "kubelane reloads (SIGHUP)", 1s, [&] { on.proxy().signal(SIGHUP); }, [] {});
}

}  // namespace

int show(std::ostream& out, screen on) {
  std::vector<result> results;
  {
    stage everything(out, on);
    run_faults(everything);
    results = everything.results();
  }
  client_figures total;
  for (const auto& one : results) total += one.figures;
  results.push_back({"all together", total});
  if (on == screen::terminal) out << "\x1b[H\x1b[2J";
  out << '\n'
      << results_table(results) << '\n'
      << total.failures << " of " << total.requests + total.failures << " requests lost\n";
  return total.failures == 0 ? 0 : 1;
}

}  // namespace kubelane::demo
