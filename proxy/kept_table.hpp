#pragma once

#include "net/endpoint.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kubelane::proxy {

/// What cannot be read off a kept connection's sockets and pipes. Lives in memory that the service
/// manager holds too, so that it is there after this process was killed at any instruction: each
/// field is written before the step it announces, and a step may be done twice.
///
/// The layout is shared by all versions of kubelane and must not change. A newer version may give
/// meaning to `reserved`, and sets a bit of `needs` if an older one must not carry the connection
/// on without knowing it.
struct kept_record {
  // Bits of `flags`.
  static constexpr std::uint32_t remote_client = 1;  ///< the client is not on this host
  static constexpr std::uint32_t told_client = 2;    ///< it is told the end now: nothing follows
  static constexpr std::uint32_t told_server = 4;
  static constexpr std::uint32_t client_broken = 8;  ///< it had an error, which is told only once
  static constexpr std::uint32_t server_broken = 16;
  static constexpr std::uint32_t server_ended_first = 32;
  static constexpr std::uint32_t leaving = 64;   ///< made to leave its upstream, in order
  static constexpr std::uint32_t ended = 128;    ///< over, both sides in order: only to be closed
  static constexpr std::uint32_t aborted = 256;  ///< over, by a reset of both sides
  static constexpr std::uint32_t busy = 512;     ///< between two system calls

  std::uint32_t id = 0;     ///< 0: the place is free; written last
  std::uint32_t needs = 0;  ///< none is known yet
  std::uint32_t flags = 0;
  std::uint32_t scope = 0;                 ///< of the upstream's address
  std::array<std::uint8_t, 16> address{};  ///< of the upstream; IPv4 in the first four
  std::uint16_t port = 0;                  ///< of the upstream; 0: the client is still dialled
  std::uint16_t family = 0;                ///< 4 or 6
  std::uint32_t reserved_word = 0;
  std::int64_t accepted = 0;  ///< nanoseconds of CLOCK_MONOTONIC
  // Inode numbers tell the descriptors of one name apart, which come back in any order.
  std::uint64_t client = 0;
  std::uint64_t server = 0;
  std::uint64_t up = 0;    ///< the pipe from client to server
  std::uint64_t down = 0;  ///< and back
  std::array<std::uint64_t, 6> reserved{};

  void set(std::uint32_t flag) noexcept;
  void clear(std::uint32_t flag) noexcept;
  bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }

  void set_upstream(const net::endpoint& value);
  /// Nothing if there is none, or what is written there is none.
  std::optional<net::endpoint> upstream() const;
  /// As the descriptors are called in the store: `c` and the id; at most nine characters.
  std::string name() const;
};
static_assert(sizeof(kept_record) == 128);

/// The records of all kept connections: one file in memory. Owns its mapping and its descriptor.
class kept_table {
 public:
  static constexpr std::size_t places = 1024;
  /// As its descriptor is called in the store.
  static constexpr char stored_as[] = "connections";

  /// An empty one; nothing if the kernel gives no memory.
  static std::optional<kept_table> create();
  /// Takes over the one of the process before; nothing, and the descriptor is closed, if it is none
  /// or of a layout that is not known.
  static std::optional<kept_table> open(int descriptor);

  kept_table(kept_table&& other) noexcept;
  kept_table& operator=(kept_table&&) = delete;
  ~kept_table();

  int descriptor() const noexcept { return fd_; }
  /// A new record, not visible before `publish`; nullptr if the table is full.
  kept_record* add();
  /// From now on the record counts: everything else in it is written.
  void publish(kept_record& added) noexcept;
  /// The place is free for another.
  void remove(kept_record& gone) noexcept;
  /// Frees every place that holds none of these.
  void remove_all_but(std::span<const kept_record* const> kept) noexcept;
  /// The record of this name; nullptr if there is none.
  kept_record* find(std::string_view name) noexcept;

 private:
  struct contents;
  kept_table(int fd, contents* mapped) noexcept : fd_(fd), mapped_(mapped) {}

  int fd_;
  contents* mapped_;  // places are used from the first on, so that few pages are
};

}  // namespace kubelane::proxy
