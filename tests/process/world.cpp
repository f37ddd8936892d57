#include "world.hpp"

#include "tests/support/poll_until.hpp"

#include <boost/json.hpp>

namespace kubelane::test {

world::world() {
  for (std::size_t i = 0; i < servers.size(); ++i)
    servers[i] = std::make_unique<fake_apiserver>("cp" + std::to_string(i + 1));
  folder.write("ca.crt", test_authority().certificate_pem());
}

std::string world::configuration(const std::string& extra, const std::string& health) const {
  std::string text = "version: 1\nlisten: 127.0.0.1:" + std::to_string(port) +
                     "\nadmin: {listen: \"127.0.0.1:" + std::to_string(admin) + "\"}\nupstreams:\n";
  for (const auto& server : servers)
    text += "  - {name: " + server->name() + ", address: \"" + net::to_string(server->address()) +
            "\"}\n";
  const auto tls = "tls: {ca_file: " + (folder / "ca.crt") + '}';
  return text + "health: {" + health + (health.empty() ? "" : ", ") + tls + "}\n" + extra;
}

bool answers(int admin, const std::string& path, int status, std::chrono::milliseconds limit) {
  return poll_until([&] { return get(admin, path).status == status; }, limit);
}

bool becomes(int admin, const std::string& name, const std::string& state,
             std::chrono::milliseconds limit) {
  return poll_until(
      [&] {
        const auto answer = get(admin, "/status");
        if (answer.status != 200) return false;
        const auto document = boost::json::parse(answer.body);
        for (const auto& one : document.at("upstreams").as_array())
          if (one.at("name").as_string() == name) return one.at("state").as_string() == state;
        return false;
      },
      limit);
}

std::optional<double> metric(int admin, const std::string& series) {
  const auto text = '\n' + get(admin, "/metrics").body;
  const auto at = text.find('\n' + series + ' ');
  if (at == std::string::npos) return std::nullopt;
  return std::stod(text.substr(at + series.size() + 2));
}

}  // namespace kubelane::test
