#pragma once

#include "net/endpoint.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <sys/socket.h>

#include <vector>

namespace kubelane::test {

/// A port that answers no SYN: it listens, but its queue of connections is full.
class silent_listener {
 public:
  silent_listener() {
    using boost::asio::ip::tcp;
    acceptor_.open(tcp::v4());
    acceptor_.bind({boost::asio::ip::address_v4::loopback(), 0});
    acceptor_.listen(0);
    for (int i = 0; i < 2; ++i) {  // one is queued, one more is half open
      auto& one = fillers_.emplace_back(io_);
      one.open(tcp::v4());
      one.native_non_blocking(true);
      const auto target = acceptor_.local_endpoint();
      ::connect(one.native_handle(), target.data(), static_cast<socklen_t>(target.size()));
    }
  }
  net::endpoint address() const {
    return {acceptor_.local_endpoint().address(), acceptor_.local_endpoint().port()};
  }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  std::vector<boost::asio::ip::tcp::socket> fillers_;
};

/// A port that nobody listens on.
inline net::endpoint closed_port() {
  boost::asio::io_context io;
  const boost::asio::ip::tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  return {acceptor.local_endpoint().address(), acceptor.local_endpoint().port()};
}

}  // namespace kubelane::test
