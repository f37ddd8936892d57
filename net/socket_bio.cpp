#include "net/socket_bio.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace kubelane::net {
namespace {

using method_ptr = std::unique_ptr<BIO_METHOD, openssl_free<BIO_meth_free>>;

bool is_temporary(int error) {
  return error == EAGAIN || error == EINTR;
}

int read_socket(BIO* bio, char* into, int size) {
  auto& through = *static_cast<wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto n = ::recv(through.descriptor, into, static_cast<std::size_t>(size), 0);
  if (n > 0) {
    through.received += static_cast<std::uint64_t>(n);
    if (!through.first_byte) through.first_byte = static_cast<unsigned char>(*into);
  } else if (n == 0) {
    through.ended = true;
  } else if (is_temporary(errno)) {
    BIO_set_retry_read(bio);
  } else {
    through.error = errno;
  }
  return static_cast<int>(n);
}

int write_socket(BIO* bio, const char* from, int size) {
  auto& through = *static_cast<wire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto n = ::send(through.descriptor, from, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && is_temporary(errno)) {
    BIO_set_retry_write(bio);
  } else if (n < 0) {
    through.error = errno;
  }
  return static_cast<int>(n);
}

// BIO_CTRL_EOF is left out: told of an end, the library forgets the session, and a server that
// restarted its connections would have to do a full handshake with everybody.
long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

method_ptr make_method() {
  method_ptr method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket"));
  BIO_meth_set_read(method.get(), read_socket);
  BIO_meth_set_write(method.get(), write_socket);
  BIO_meth_set_ctrl(method.get(), control);
  return method;
}

}  // namespace

bio_ptr make_socket_bio(wire& through) {
  static const method_ptr method = make_method();
  bio_ptr bio(BIO_new(method.get()));
  BIO_set_data(bio.get(), &through);
  BIO_set_init(bio.get(), 1);
  return bio;
}

}  // namespace kubelane::net
