#include "node/proc.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <sstream>

namespace kubelane::node {
namespace {

namespace ip = boost::asio::ip;

constexpr std::string_view state_listen = "0A";

template <class Number>
std::optional<Number> number(std::string_view text, int base) {
  Number value{};
  const auto* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

// The kernel prints each 32 bits as a number of this machine's byte order.
std::optional<ip::address> kernel_address(std::string_view hex) {
  std::array<unsigned char, 16> bytes{};
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  for (std::size_t i = 0; i < hex.size() / 8; ++i) {
    const auto word = number<std::uint32_t>(hex.substr(i * 8, 8), 16);
    if (!word) return std::nullopt;
    std::memcpy(bytes.data() + i * 4, &*word, 4);
  }
  if (hex.size() == 32) return ip::address_v6(bytes);
  return ip::address_v4({bytes[0], bytes[1], bytes[2], bytes[3]});
}

std::optional<net::endpoint> kernel_endpoint(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto address = kernel_address(text.substr(0, colon));
  const auto port = number<std::uint16_t>(text.substr(colon + 1), 16);
  if (!address || !port) return std::nullopt;
  return net::endpoint(*address, *port);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

template <class Use>
void each_line(std::string_view text, const Use& use) {
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) use(words_of(line));
}

}  // namespace

std::vector<listening> parse_listeners(std::string_view proc_net_tcp) {
  std::vector<listening> found;
  each_line(proc_net_tcp, [&](const std::vector<std::string>& words) {
    if (words.size() < 10 || words[3] != state_listen) return;
    const auto address = kernel_endpoint(words[1]);
    const auto inode = number<std::uint64_t>(words[9], 10);
    if (address && inode) found.push_back({*address, *inode});
  });
  return found;
}

std::optional<std::uint64_t> socket_inode(std::string_view link) {
  constexpr std::string_view before = "socket:[";
  if (!link.starts_with(before) || !link.ends_with(']')) return std::nullopt;
  return number<std::uint64_t>(link.substr(before.size(), link.size() - before.size() - 1), 10);
}

std::string option_value(std::string_view text, std::string_view name, char separator) {
  const std::string option = "--" + std::string(name);
  for (std::size_t at = text.find(option); at != std::string_view::npos;
       at = text.find(option, at + 1)) {
    auto rest = text.substr(at + option.size());
    if (rest.empty() || (rest.front() != '=' && rest.front() != separator)) continue;
    rest.remove_prefix(1);
    return std::string(
        rest.substr(0, rest.find_first_of(std::string{separator, '"', '\'', '\n', '\\'})));
  }
  return {};
}

std::vector<ip::address> parse_hosts(std::string_view text) {
  std::vector<ip::address> found;
  each_line(text, [&](const std::vector<std::string>& words) {
    if (words.empty()) return;
    boost::system::error_code error;
    const auto address = ip::make_address(words.front(), error);
    if (error) return;
    for (std::size_t i = 1; i < words.size() && words[i].front() != '#'; ++i)
      if (words[i] == "localhost") return found.push_back(address);
  });
  return found;
}

std::vector<selinux::label> parse_port_labels(std::string_view text, const std::string& place) {
  std::vector<selinux::label> found;
  each_line(text, [&](const std::vector<std::string>& words) {
    if (words.size() < 4 || words[0] != "portcon" || words[1] != "tcp") return;
    const std::string_view range = words[2];
    const auto dash = range.find('-');
    const auto first = number<int>(range.substr(0, dash), 10);
    const auto last =
        dash == std::string_view::npos ? first : number<int>(range.substr(dash + 1), 10);
    if (first && last) found.push_back({*first, *last, selinux_type(words[3]), place});
  });
  return found;
}

std::string selinux_type(std::string_view context) {
  for (int i = 0; i < 2; ++i) {
    const auto colon = context.find(':');
    if (colon == std::string_view::npos) return {};
    context.remove_prefix(colon + 1);
  }
  context = context.substr(0, context.find(':'));
  while (!context.empty() && (context.back() == '\0' || context.back() == '\n'))
    context.remove_suffix(1);
  return std::string(context);
}

std::optional<moment> parse_date(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace kubelane::node
