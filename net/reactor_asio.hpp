#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

namespace kubelane::net {

/// An `io_context` as a guest of another loop: the reactor waits for it and polls it.
class asio_guest {
 public:
  /// `io` outlives this, is run by nobody else and never stopped (whoever stops the outer loop
  /// stops both). It does not end for want of work.
  explicit asio_guest(boost::asio::io_context& io);

  /// Readable (level-triggered) when a socket, timer or signal of Asio's is due.
  int descriptor() const noexcept { return descriptor_; }
  /// Handlers wait that the descriptor does not announce: they were posted outside `poll`.
  bool has_posted() const;
  /// Runs what is ready, at most `handlers` of it; true if there may be more.
  bool poll(int handlers);

 private:
  boost::asio::io_context& io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  void* scheduler_;
  int descriptor_;
};

}  // namespace kubelane::net
