#include "proxy/kept_table.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <type_traits>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr std::uint64_t magic = 0x6b7562656c616e65;  // "kubelane"
constexpr std::uint32_t layout = 1;
constexpr char prefix = 'c';

// A killed process leaves what it has written in the order of the program, as long as the compiler
// keeps that order.
void keep_order() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace

struct kept_table::contents {
  std::uint64_t magic;
  std::uint32_t layout;
  std::uint32_t record_size;
  std::uint32_t places;
  std::uint32_t last_id;
  std::uint32_t used;  // no place from this one on was ever used
  std::uint32_t reserved_word;
  std::array<std::uint64_t, 12> reserved;
  std::array<kept_record, kept_table::places> records;
};

void kept_record::set(std::uint32_t flag) noexcept {
  flags |= flag;
  keep_order();
}

void kept_record::clear(std::uint32_t flag) noexcept {
  keep_order();
  flags &= ~flag;
}

void kept_record::set_upstream(const net::endpoint& value) {
  port = value.port();
  if (value.address().is_v4()) {
    family = 4;
    const auto bytes = value.address().to_v4().to_bytes();
    std::copy(bytes.begin(), bytes.end(), address.begin());
    return;
  }
  family = 6;
  const auto v6 = value.address().to_v6();
  const auto bytes = v6.to_bytes();
  std::copy(bytes.begin(), bytes.end(), address.begin());
  scope = static_cast<std::uint32_t>(v6.scope_id());
}

std::optional<net::endpoint> kept_record::upstream() const {
  namespace ip = boost::asio::ip;
  if (port == 0) return std::nullopt;
  if (family == 4) {
    ip::address_v4::bytes_type bytes;
    std::copy_n(address.begin(), bytes.size(), bytes.begin());
    return net::endpoint(ip::address_v4(bytes), port);
  }
  if (family == 6) return net::endpoint(ip::address_v6(address, scope), port);
  return std::nullopt;
}

std::string kept_record::name() const {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), id, 16).ptr;
  return prefix + std::string(digits.data(), end);
}

std::optional<kept_table> kept_table::create() {
  static_assert(sizeof(contents) == (places + 1) * sizeof(kept_record));
  static_assert(std::is_trivially_copyable_v<contents>);
  const int fd = memfd_create("kubelane connections", MFD_CLOEXEC);
  if (fd < 0) return std::nullopt;
  if (ftruncate(fd, sizeof(contents)) == 0) {
    void* const memory = mmap(nullptr, sizeof(contents), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory != MAP_FAILED) {
      auto* const mapped = static_cast<contents*>(memory);
      mapped->magic = magic;
      mapped->layout = layout;
      mapped->record_size = sizeof(kept_record);
      mapped->places = places;
      return kept_table(fd, mapped);
    }
  }
  close(fd);
  return std::nullopt;
}

std::optional<kept_table> kept_table::open(int descriptor) {
  struct stat about {};
  // A file that is too short, or may become so, would end this process by SIGBUS: only ever memory
  // of exactly this size.
  if (fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
      about.st_size == static_cast<off_t>(sizeof(contents))) {
    void* const memory =
        mmap(nullptr, sizeof(contents), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory != MAP_FAILED) {
      auto* const mapped = static_cast<contents*>(memory);
      if (mapped->magic == magic && mapped->layout == layout &&
          mapped->record_size == sizeof(kept_record) && mapped->places == places)
        return kept_table(descriptor, mapped);
      munmap(memory, sizeof(contents));
    }
  }
  close(descriptor);
  return std::nullopt;
}

kept_table::kept_table(kept_table&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), mapped_(std::exchange(other.mapped_, nullptr)) {}

kept_table::~kept_table() {
  if (mapped_ == nullptr) return;
  munmap(mapped_, sizeof(contents));
  close(fd_);
}

kept_record* kept_table::add() {
  auto* const begin = mapped_->records.data();
  auto* const end = begin + std::min<std::size_t>(mapped_->used, places);
  auto* const place = std::find_if(begin, end, [](const auto& each) { return each.id == 0; });
  if (place == end) {
    if (mapped_->used >= places) return nullptr;
    ++mapped_->used;
  }
  *place = {};
  return place;
}

void kept_table::publish(kept_record& added) noexcept {
  if (++mapped_->last_id == 0) mapped_->last_id = 1;
  keep_order();
  added.id = mapped_->last_id;
  keep_order();
}

void kept_table::remove(kept_record& gone) noexcept {
  gone.id = 0;
  keep_order();
}

void kept_table::remove_all_but(std::span<const kept_record* const> kept) noexcept {
  for (std::size_t i = 0; i < std::min<std::size_t>(mapped_->used, places); ++i) {
    auto& each = mapped_->records[i];
    if (std::find(kept.begin(), kept.end(), &each) == kept.end()) remove(each);
  }
}

kept_record* kept_table::find(std::string_view name) noexcept {
  if (name.size() < 2 || name.front() != prefix) return nullptr;
  std::uint32_t id = 0;
  const char* const name_end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + 1, name_end, id, 16);
  if (read.ec != std::errc{} || read.ptr != name_end || id == 0) return nullptr;
  auto* const begin = mapped_->records.data();
  auto* const end = begin + std::min<std::size_t>(mapped_->used, places);
  auto* const found = std::find_if(begin, end, [id](const auto& each) { return each.id == id; });
  return found == end ? nullptr : found;
}

}  // namespace kubelane::proxy
