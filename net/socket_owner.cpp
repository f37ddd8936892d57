#include "net/socket_owner.hpp"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace kubelane::net {
namespace {

struct request {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

void write_address(const endpoint& from, std::uint32_t (&to)[4]) {
  if (from.address().is_v4()) {
    to[0] = htonl(from.address().to_v4().to_uint());
    return;
  }
  const auto bytes = from.address().to_v6().to_bytes();
  std::memcpy(to, bytes.data(), bytes.size());
}

request make_request(const endpoint& local, const endpoint& remote) {
  request asked{};
  asked.header.nlmsg_len = sizeof asked;
  asked.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  asked.header.nlmsg_flags = NLM_F_REQUEST;
  asked.body.sdiag_family = local.address().is_v4() ? AF_INET : AF_INET6;
  asked.body.sdiag_protocol = IPPROTO_TCP;
  asked.body.idiag_states = ~0U;
  asked.body.id.idiag_sport = htons(local.port());
  asked.body.id.idiag_dport = htons(remote.port());
  write_address(local, asked.body.id.idiag_src);
  write_address(remote, asked.body.id.idiag_dst);
  asked.body.id.idiag_cookie[0] = asked.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return asked;
}

std::optional<std::uint32_t> ask(int kernel, const request& question) {
  if (send(kernel, &question, sizeof question, 0) != sizeof question) return std::nullopt;
  alignas(nlmsghdr) std::array<char, 4096> answer;
  const auto size = recv(kernel, answer.data(), answer.size(), MSG_DONTWAIT);
  nlmsghdr header;
  inet_diag_msg found;
  if (size < static_cast<ssize_t>(sizeof header + sizeof found)) return std::nullopt;
  std::memcpy(&header, answer.data(), sizeof header);
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return std::nullopt;
  std::memcpy(&found, answer.data() + NLMSG_HDRLEN, sizeof found);
  return found.idiag_uid;
}

}  // namespace

std::optional<std::uint32_t> owner_of(const endpoint& local, const endpoint& remote) {
  const int kernel = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) return std::nullopt;
  const auto owner = ask(kernel, make_request(local, remote));
  close(kernel);
  return owner;
}

}  // namespace kubelane::net
