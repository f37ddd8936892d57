#include "net/resolve.hpp"

#include "net/lookup_queue.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace kubelane::net {
namespace {

namespace asio = boost::asio;
using asio::ip::address;

struct free_addresses {
  void operator()(addrinfo* list) const noexcept { ::freeaddrinfo(list); }
};

address to_address(const addrinfo& from) {
  if (from.ai_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(from.ai_addr);
    return asio::ip::address_v4(ntohl(v4.sin_addr.s_addr));
  }
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(from.ai_addr);
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return asio::ip::address_v6(bytes, v6.sin6_scope_id);
}

}  // namespace

lookup_result ask_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &hints, &found);
  if (error == EAI_SYSTEM) return std::string(std::strerror(errno));
  if (error != 0) return std::string(::gai_strerror(error));
  const std::unique_ptr<addrinfo, free_addresses> list(found);
  std::vector<address> result;
  for (const auto* one = list.get(); one; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    const auto next = to_address(*one);
    if (std::find(result.begin(), result.end(), next) == result.end()) result.push_back(next);
  }
  return result;
}

struct resolver::impl {
  impl(asio::io_context& io, question ask)
      : queue(std::make_shared<lookup_queue>(std::move(ask))),
        // The descriptor itself belongs to the queue, which threads may outlive us with.
        answered(io, ::fcntl(queue->descriptor(), F_DUPFD_CLOEXEC, 0)) {}

  void wait();
  void deliver();

  std::shared_ptr<lookup_queue> queue;  // shared with the helper threads
  asio::posix::stream_descriptor answered;
  std::map<std::string, std::vector<callback>> waiting;
};

void resolver::impl::wait() {
  answered.async_wait(asio::posix::stream_descriptor::wait_read,
                      [this](boost::system::error_code error) {
                        if (error) return;
                        deliver();
                      });
}

void resolver::impl::deliver() {
  auto answers = queue->take_answers();
  std::vector<std::pair<callback, lookup_result>> calls;
  for (auto& [name, result] : answers) {
    const auto asked = waiting.extract(name);
    if (asked.empty()) continue;
    for (auto& done : asked.mapped()) calls.emplace_back(std::move(done), result);
  }
  if (!waiting.empty()) wait();
  for (auto& [done, result] : calls) done(std::move(result));
}

resolver::resolver(asio::io_context& io) : resolver(io, ask_system) {}

resolver::resolver(asio::io_context& io, question ask)
    : impl_(std::make_unique<impl>(io, std::move(ask))) {}

resolver::~resolver() = default;

void resolver::lookup(const std::string& name, callback done) {
  const bool idle = impl_->waiting.empty();
  auto& asked = impl_->waiting[name];
  asked.push_back(std::move(done));
  if (asked.size() == 1) impl_->queue->ask(name);
  if (idle) impl_->wait();
}

}  // namespace kubelane::net
