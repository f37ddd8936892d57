#include "proxy/client_hello.hpp"

#include <algorithm>
#include <optional>

namespace kubelane::proxy {
namespace {

using bytes_view = std::span<const std::uint8_t>;

constexpr std::uint8_t handshake_record = 22;
constexpr std::uint8_t client_hello_message = 1;
constexpr unsigned early_data_extension = 42;
constexpr std::size_t record_header = 5;
constexpr std::size_t message_header = 4;
constexpr std::size_t largest_record = 1 << 14;

// Reads the handshake message that the records carry, over their borders. The records were
// walked before: each header and each length is whole and good.
class message_reader {
 public:
  explicit message_reader(bytes_view records) : rest_(records) {}

  std::optional<unsigned> number(std::size_t width) {
    unsigned value = 0;
    for (; width > 0; --width) {
      if (!enter_record()) return std::nullopt;
      value = value << 8 | rest_.front();
      advance(1);
    }
    return value;
  }

  bool skip(std::size_t count) {
    while (count > 0) {
      if (!enter_record()) return false;
      const auto step = std::min(count, in_record_);
      advance(step);
      count -= step;
    }
    return true;
  }

  // Skips a vector whose length, `width` bytes wide, must be in [least, most].
  bool skip_vector(std::size_t width, unsigned least, unsigned most) {
    const auto length = number(width);
    return length && *length >= least && *length <= most && skip(*length);
  }

  std::size_t taken() const { return taken_; }

 private:
  bool enter_record() {
    if (in_record_ > 0) return true;
    if (rest_.size() < record_header) return false;
    in_record_ = static_cast<std::size_t>(rest_[3] << 8 | rest_[4]);
    rest_ = rest_.subspan(record_header);
    return true;
  }
  void advance(std::size_t count) {
    rest_ = rest_.subspan(count);
    in_record_ -= count;
    taken_ += count;
  }

  bytes_view rest_;
  std::size_t in_record_ = 0;
  std::size_t taken_ = 0;
};

bool extensions_are_harmless(message_reader& in, std::size_t end) {
  const auto length = in.number(2);
  if (!length || in.taken() + *length != end) return false;
  while (in.taken() < end) {
    const auto type = in.number(2);
    if (!type || *type == early_data_extension) return false;
    const auto size = in.number(2);
    if (!size || in.taken() + *size > end || !in.skip(*size)) return false;
  }
  return true;
}

bool is_harmless(bytes_view records, std::size_t message_size) {
  message_reader in(records);
  const auto end = message_header + message_size;
  if (!in.skip(message_header)) return false;
  if (!in.skip(2 + 32)) return false;               // legacy_version, random
  if (!in.skip_vector(1, 0, 32)) return false;      // legacy_session_id
  if (!in.skip_vector(2, 2, 0xfffe)) return false;  // cipher_suites
  if (!in.skip_vector(1, 1, 255)) return false;     // legacy_compression_methods
  if (in.taken() == end) return true;               // TLS 1.2 may end here
  return in.taken() < end && extensions_are_harmless(in, end);
}

// The bytes of one record header that have arrived are those of a handshake record.
bool may_start_record(bytes_view header) {
  if (!header.empty() && header[0] != handshake_record) return false;
  if (header.size() > 1 && header[1] != 3) return false;
  if (header.size() > 2 && header[2] > 4) return false;
  if (header.size() < record_header) return true;
  const auto length = static_cast<std::size_t>(header[3] << 8 | header[4]);
  return length >= 1 && length <= largest_record;
}

// What walking the records has found of the handshake message.
struct message_so_far {
  std::size_t arrived = 0;  // bytes of it, its header included
  std::uint8_t header[message_header] = {};

  void add(bytes_view payload) {
    for (std::size_t i = 0; i < payload.size() && arrived + i < message_header; ++i)
      header[arrived + i] = payload[i];
    arrived += payload.size();
  }
  std::size_t size() const {
    return static_cast<std::size_t>(header[1]) << 16 | static_cast<std::size_t>(header[2] << 8) |
           header[3];
  }
};

}  // namespace

flight classify_flight(bytes_view bytes) {
  if (bytes.empty()) return flight::empty;
  message_so_far message;
  for (auto rest = bytes; !rest.empty();) {
    if (!may_start_record(rest.first(std::min(rest.size(), record_header)))) return flight::other;
    if (rest.size() < record_header) return flight::partial_hello;
    const auto length = static_cast<std::size_t>(rest[3] << 8 | rest[4]);
    const auto payload = rest.subspan(record_header, std::min(length, rest.size() - record_header));
    message.add(payload);
    rest = rest.subspan(record_header + payload.size());

    if (message.arrived >= 1 && message.header[0] != client_hello_message) return flight::other;
    if (message.arrived < message_header) continue;
    const auto total = message_header + message.size();
    if (total + record_header > flight_limit || message.arrived > total) return flight::other;
    if (message.arrived < total) continue;
    const bool ends_here = payload.size() == length && rest.empty();
    return ends_here && is_harmless(bytes, message.size()) ? flight::hello : flight::other;
  }
  return flight::partial_hello;
}

}  // namespace kubelane::proxy
