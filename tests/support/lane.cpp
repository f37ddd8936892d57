#include "tests/support/lane.hpp"

#include <stdexcept>

namespace kubelane::test {
namespace {

config::config with_zone(config::config given) {
  given.zone = "here";
  return given;
}

}  // namespace

lane::lane(config::config given)
    : settings(with_zone(std::move(given))),
      pool(settings,
           [this] {
             return std::uniform_real_distribution<double>{0, 1}(random);
           }),
      path(loop, pool, settings, observer(), [this] {
        return std::uniform_real_distribution<double>{0, 1}(random);
      }) {
  loop.on_turn([](void* of) { static_cast<proxy::upstream_pool*>(of)->take_effects(); }, &pool);
}

lane::~lane() {
  loop.on_turn(nullptr);
}

void lane::use(const std::vector<net::endpoint>& upstreams) {
  std::vector<proxy::wanted_upstream> wanted;
  for (std::size_t i = 0; i < upstreams.size(); ++i)
    wanted.push_back({.name = "cp" + std::to_string(i + 1),
                      .address = upstreams[i],
                      .zone = i == 0 ? "here" : "elsewhere",
                      .member = health::membership::configured});
  pool.reconcile(wanted, loop.now());
}

net::endpoint lane::listen(const char* address) {
  const net::endpoint any(boost::asio::ip::make_address(address), 0);
  const int fd = proxy::open_listener(any).value();
  const auto where = *net::local_of(fd);
  path.listen(fd);
  if (first_listener == net::endpoint{}) first_listener = where;
  return where;
}

void lane::run_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  until([&] { return std::chrono::steady_clock::now() >= end; }, time + 5s);
}

peer lane::accept(test_listener& from) {
  peer result;
  const bool came = until([&] {
    if (auto next = from.accept()) result = std::move(*next);
    return result.is_open();
  });
  if (!came) throw std::runtime_error("nobody connected");
  return result;
}

bool lane::carry(peer& from, peer& to, const std::string& bytes) {
  std::size_t sent = 0;
  const auto wanted = to.received.size() + bytes.size();
  const auto before = to.received.size();
  const bool came = until(
      [&] {
        if (sent < bytes.size()) sent += from.push(std::string_view(bytes).substr(sent));
        to.pull();
        return to.received.size() >= wanted || to.saw_end || to.saw_reset;
      },
      30s);
  return came && to.received.compare(before, std::string::npos, bytes) == 0;
}

std::pair<peer, peer> lane::pair(test_listener& server, int receive_buffer) {
  auto here = client(receive_buffer);
  auto there = accept(server);
  if (!carry(here, there, "?") || !carry(there, here, "!"))
    throw std::runtime_error("no relay came about");
  here.received.clear();
  there.received.clear();
  return {std::move(here), std::move(there)};
}

proxy::upstream_id lane::id(std::size_t upstream) {
  return pool.status(loop.now()).upstreams.at(upstream).id;
}

std::string lane::name_of(proxy::upstream_id id) {
  for (const auto& each : pool.status(loop.now()).upstreams)
    if (each.id == id) return each.name;
  return "?";
}

proxy::data_path_observer lane::observer() {
  return {
      .connection_ended = [this](auto, auto why, auto) { ends.push_back(why); },
      .dial_ended =
          [this](auto which, auto result, auto) {
            dials.push_back(name_of(which) + " " + health::to_string(result));
          },
      .hedged = [this](const char* kind) { hedges.push_back(kind); },
      .rejected = [this](const char* reason) { rejections.push_back(reason); },
      .connection_reset = [this](auto, const char* cause) { resets.push_back(cause); },
      .problem = [this](const std::string& words) { problems.push_back(words); },
  };
}

}  // namespace kubelane::test
