#include "demo/served.hpp"

#include "demo/apiserver.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <csignal>
#include <fstream>
#include <iterator>

namespace kubelane::demo {
namespace {

namespace asio = boost::asio;

constexpr auto shutdown_delay = std::chrono::seconds(3);

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

path_answer failing(const char* check) {
  path_answer answer;
  answer.status = 500;
  answer.body =
      std::string("[+]ping ok\n[-]") + check + " failed: reason withheld\nreadyz check failed\n";
  return answer;
}

struct player {
  asio::io_context& io;
  apiserver& server;
  asio::signal_set signals{io, SIGUSR1, SIGUSR2, SIGTERM};
  asio::steady_timer delay{io};

  void wait() {
    signals.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      auto& answers = server.behaviour().answers;
      if (number == SIGUSR1) answers["/readyz"] = failing("etcd");
      if (number == SIGUSR2) answers.erase("/readyz");
      if (number == SIGTERM) leave();
      wait();
    });
  }

  void leave() {
    server.behaviour().answers["/readyz"] = failing("shutdown");
    delay.expires_after(shutdown_delay);
    delay.async_wait([this](boost::system::error_code error) {
      if (error) return;
      signals.cancel();
      server.stop();
    });
  }
};

}  // namespace

int serve(const served_options& options) {
  asio::io_context io{1};
  apiserver_options wanted;
  wanted.name = options.name;
  wanted.listen = *net::parse_endpoint("127.0.0.1:" + std::to_string(options.port), 0);
  wanted.tls.certificate_pem = content_of(options.directory + '/' + options.name + ".crt");
  wanted.tls.key_pem = content_of(options.directory + '/' + options.name + ".key");
  apiserver server(io, std::move(wanted));
  player player{io, server};
  player.wait();
  io.run();
  return 0;
}

}  // namespace kubelane::demo
