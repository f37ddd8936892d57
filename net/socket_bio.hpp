#pragma once

// Inside net/ only.

#include "net/openssl.hpp"

#include <cstdint>
#include <optional>

namespace kubelane::net {

/// What an SSL saw of its socket; OpenSSL's own socket BIO would raise SIGPIPE and forget errno.
struct wire {
  int descriptor = -1;
  int error = 0;       ///< the last errno that was not "try again"
  bool ended = false;  ///< the peer sent FIN
  std::optional<unsigned char> first_byte;
  std::uint64_t received = 0;
};

/// A BIO over `through`, which must outlive it.
bio_ptr make_socket_bio(wire& through);

}  // namespace kubelane::net
