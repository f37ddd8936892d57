#include "net/reactor_asio.hpp"

#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/detail/scheduler.hpp>

// Asio has no public way to be a guest of another loop: one needs the descriptor it waits on, and
// whether handlers are queued. Both are private members. An explicit instantiation may name a
// private member, and a friend function defined by it hands out the pointer: no cast and no
// assumption of a layout, and a Boost whose members are named or typed otherwise does not compile
// here.

namespace kubelane::net {
namespace {

namespace detail = boost::asio::detail;

template <typename Member, typename Member::pointer Value>
struct reveal {
  friend constexpr typename Member::pointer pointer_to(Member) { return Value; }
};

struct epoll_descriptor {
  using pointer = int detail::epoll_reactor::*;
  friend constexpr pointer pointer_to(epoll_descriptor);
};
struct handler_queue {
  using pointer = detail::op_queue<detail::scheduler_operation> detail::scheduler::*;
  friend constexpr pointer pointer_to(handler_queue);
};
struct queue_mutex {
  using pointer = detail::conditionally_enabled_mutex detail::scheduler::*;
  friend constexpr pointer pointer_to(queue_mutex);
};

template struct reveal<epoll_descriptor, &detail::epoll_reactor::epoll_fd_>;
template struct reveal<handler_queue, &detail::scheduler::op_queue_>;
template struct reveal<queue_mutex, &detail::scheduler::mutex_>;

}  // namespace

asio_guest::asio_guest(boost::asio::io_context& io)
    : io_(io),
      work_(io.get_executor()),
      scheduler_(&boost::asio::use_service<detail::scheduler>(io)),
      descriptor_(-1) {
  auto& reactor = boost::asio::use_service<detail::epoll_reactor>(io);
  reactor.init_task();
  descriptor_ = reactor.*pointer_to(epoll_descriptor{});
}

[[gnu::hot]] bool asio_guest::has_posted() const {
  auto& scheduler = *static_cast<detail::scheduler*>(scheduler_);
  const detail::conditionally_enabled_mutex::scoped_lock lock(scheduler.*pointer_to(queue_mutex{}));
  // While nothing runs, the queue holds the reactor's own entry and, around it, what was posted.
  auto* const first = detail::op_queue_access::front(scheduler.*pointer_to(handler_queue{}));
  return first != nullptr && detail::op_queue_access::next(first) != nullptr;
}

bool asio_guest::poll(int handlers) {
  for (; handlers > 0; --handlers)
    if (io_.poll_one() == 0) return false;
  return true;
}

}  // namespace kubelane::net
