#include "config/address.hpp"

#include <algorithm>
#include <charconv>

namespace kubelane::config {
namespace {

constexpr std::uint16_t default_port = 6443;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), is_name_char);
}

/// Decimal or hexadecimal: `getaddrinfo` takes a name that ends so for an IPv4 address.
bool is_number(std::string_view label) {
  if (label.starts_with("0x") || label.starts_with("0X")) return true;
  return std::all_of(label.begin(), label.end(), is_digit);
}

bool looks_like_ipv4(std::string_view host) {
  return !host.empty() &&
         std::all_of(host.begin(), host.end(), [](char c) { return is_digit(c) || c == '.'; });
}

/// Why a text is not `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address, with the
/// right form.
std::string explain_form(std::string_view text, std::string_view form) {
  const auto colon = text.rfind(':');
  const bool one_colon = colon != std::string_view::npos && text.find(':') == colon;
  const bool bracketed = text.starts_with('[') && text.find("]:") + 1 == colon;
  const auto has_host = [&] {
    return colon > 0 && net::parse_host_port(text.substr(0, colon), default_port).has_value();
  };
  if ((one_colon || bracketed) && has_host()) return "port is not in 1..65535";
  return (text.empty() ? "is empty: write " : "is not an address: write ") + std::string(form);
}

std::string canonical(std::string_view name) {
  std::string result(name.ends_with('.') ? name.substr(0, name.size() - 1) : name);
  for (auto& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

}  // namespace

bool is_dns_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.empty() || text.size() > 253) return false;
  for (;;) {
    const auto label = text.substr(0, text.find('.'));
    if (!is_label(label)) return false;
    if (label.size() == text.size()) return !is_number(label);
    text.remove_prefix(label.size() + 1);
  }
}

boost::system::result<net::host_port, address_error> parse_upstream_address(std::string_view text) {
  if (text.find("://") != std::string_view::npos)
    return address_error{"is a URL: write the address alone, as 10.0.0.11:6443"};
  const auto parts = net::parse_host_port(text, default_port);
  if (!parts)
    return address_error{
        explain_form(text, "10.0.0.11:6443, [fd00::13]:6443 or cp1.example.com:6443")};
  if (const auto ip = net::parse_endpoint(text, default_port))
    return net::host_port{ip->address().to_string(), ip->port()};
  if (is_dns_name(parts->host)) return net::host_port{canonical(parts->host), parts->port};
  return address_error{looks_like_ipv4(parts->host) ? "is not an IPv4 address"
                                                    : "is neither an IP address nor a DNS name"};
}

boost::system::result<net::endpoint, address_error> parse_listen_address(std::string_view text) {
  const std::string form = "an IP address and a port, as 127.0.0.1:6443 or [::1]:6443";
  const auto parts = net::parse_host_port(text, 0);
  if (!parts) return address_error{explain_form(text, form)};
  const auto found = net::parse_endpoint(text, 0);
  if (!found) return address_error{"is not an IP address: write " + form};
  if (found->port() == 0) return address_error{"has no port: write " + form};
  return *found;
}

boost::system::result<net::subnet, address_error> parse_subnet(std::string_view text) {
  const std::string form = "write a range of addresses, as 10.0.0.0/8 or fd00::/8";
  if (text.empty()) return address_error{"is empty: " + form};
  const auto slash = text.find('/');
  boost::system::error_code error;
  const auto base = boost::asio::ip::make_address(std::string(text.substr(0, slash)), error);
  if (error) return address_error{"is not a range of addresses: " + form};
  const unsigned bits = base.is_v4() ? 32 : 128;
  if (slash == std::string_view::npos) return net::subnet(base, bits);
  const auto number = text.substr(slash + 1);
  const auto* end = number.data() + number.size();
  unsigned prefix = 0;
  const auto [stop, failure] = std::from_chars(number.data(), end, prefix);
  if (failure != std::errc{} || stop != end || prefix > bits)
    return address_error{"has no prefix length in 0.." + std::to_string(bits) + ": " + form};
  const net::subnet result(base, prefix);
  if (result.base() != base)
    return address_error{"has bits beyond its prefix: write " + net::to_string(result)};
  return result;
}

}  // namespace kubelane::config
