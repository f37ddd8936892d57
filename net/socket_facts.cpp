#include "net/socket_facts.hpp"

// Not <netinet/tcp.h>: its tcp_info ends before the bytes that were not sent, and the two headers
// exclude each other.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace kubelane::net {

namespace {

constexpr std::uint8_t closed_state = 7;  // TCP_CLOSE

std::optional<tcp_info> ask(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info;
}

}  // namespace

std::optional<socket_facts> facts_of(int fd) {
  const auto info = ask(fd);
  if (!info) return std::nullopt;
  return socket_facts{.unacknowledged_segments = info->tcpi_unacked,
                      .unsent_bytes = info->tcpi_notsent_bytes,
                      .retransmits = info->tcpi_retransmits,
                      .probes = info->tcpi_probes,
                      .since_acknowledgement = std::chrono::milliseconds(info->tcpi_last_ack_recv)};
}

std::optional<socket_counts> counts_of(int fd) {
  const auto info = ask(fd);
  if (!info) return std::nullopt;
  return socket_counts{
      .is_closed = info->tcpi_state == closed_state,
      .received = info->tcpi_bytes_received,
      .written = info->tcpi_bytes_sent - info->tcpi_bytes_retrans + info->tcpi_notsent_bytes};
}

}  // namespace kubelane::net
