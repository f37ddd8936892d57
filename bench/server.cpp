// The API server of the benchmarks: on one port, TLS for probes and plain HTTP for the load. One
// thread, one system call to read and one to answer, so that it is never what is measured.
//
//   bench_server PORT CERTIFICATE KEY
//
// /large is 64 MiB, anything else 1 KiB; over TLS everything is answered `ok`. /counts says what
// TLS has cost so far: handshakes, requests, bytes, and this process' CPU time.

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr char tls_hello = 0x16;
constexpr std::size_t large_size = 64 << 20;
constexpr std::size_t share = 128 << 10;  // of the large answer, before others have their turn

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

std::string answer(std::string_view body, std::size_t length, std::string_view more = "") {
  return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n" + std::string(more) +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n" + std::string(body);
}

// What is sent again and again is made once.
const std::string small_answer = answer(std::string(1024, 'x'), 1024);
const std::string last_answer = answer(std::string(1024, 'x'), 1024, "Connection: close\r\n");
const std::string large_head = answer("", large_size);
const std::string ok_answer = answer("ok", 2);

struct {
  std::uint64_t accepted = 0;
  std::uint64_t full = 0;  // handshakes
  std::uint64_t resumed = 0;
  std::uint64_t requests = 0;  // over TLS
  std::uint64_t received = 0;  // bytes over TLS
  std::uint64_t sent = 0;
} counts;

std::string counts_answer() {
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(),
                R"({"accepted":%lu,"full":%lu,"resumed":%lu,"requests":%lu,"received":%lu,)"
                R"("sent":%lu,"cpu_seconds":%ld.%09ld})",
                counts.accepted, counts.full, counts.resumed, counts.requests, counts.received,
                counts.sent, cpu.tv_sec, cpu.tv_nsec);
  const std::string body = text.data();
  return answer(body, body.size());
}

struct free_tls {
  void operator()(SSL* session) const { SSL_free(session); }
};

struct connection {
  int fd;
  std::unique_ptr<SSL, free_tls> tls = nullptr;  // with memory BIOs
  std::string request = {};                      // what has come of it
  std::size_t left = 0;                          // of the large answer
  bool closes = false;
  bool waits = false;  // for its next share
};

class server {
 public:
  server(std::uint16_t port, const char* certificate, const char* key);
  void run();

 private:
  void add(int fd, void* what, std::uint32_t events) const;
  void accept_all();
  bool serve(connection& at, std::uint32_t events);
  bool read(connection& at);
  bool take(connection& at, std::string_view bytes);
  bool take_tls(connection& at, std::string_view bytes);
  bool answer_request(connection& at);
  static bool send_text(const connection& at, std::string_view text);
  bool send_share(connection& at);
  void send_shares();
  void end(connection* at) const;

  SSL_CTX* context_;
  int listener_;
  int epoll_;
  int large_;
  std::array<char, 64 * 1024> buffer_{};
  std::vector<connection*> waiting_;  // for their next share
};

int listen_on(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // what is accepted inherits it
  // What its kernel has queued is sent whenever the proxy reads, and would be done on the proxy's
  // core.
  const int queued = 128 << 10;
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &queued, sizeof queued);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  if (bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) die("bind");
  if (listen(fd, 4096) != 0) die("listen");
  return fd;
}

SSL_CTX* make_context(const char* certificate, const char* key) {
  auto* const context = SSL_CTX_new(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1) {
    ERR_print_errors_fp(stderr);
    std::exit(1);
  }
  SSL_CTX_set_num_tickets(context, 1);  // as kube-apiserver
  return context;
}

server::server(std::uint16_t port, const char* certificate, const char* key)
    : context_(make_context(certificate, key)),
      listener_(listen_on(port)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      large_(memfd_create("large", MFD_CLOEXEC)) {
  const std::vector<char> bytes(large_size, 'x');
  if (write(large_, bytes.data(), bytes.size()) != static_cast<ssize_t>(large_size)) die("write");
  add(listener_, nullptr, EPOLLIN);
}

void server::add(int fd, void* what, std::uint32_t events) const {
  epoll_event wanted{};
  wanted.events = events;
  wanted.data.ptr = what;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &wanted) != 0) die("epoll_ctl");
}

void server::run() {
  std::array<epoll_event, 256> events;
  for (;;) {
    const int limit = waiting_.empty() ? -1 : 0;
    const int count = epoll_wait(epoll_, events.data(), events.size(), limit);
    for (int i = 0; i < count; ++i) {
      const auto& seen = events[static_cast<std::size_t>(i)];
      auto* const at = static_cast<connection*>(seen.data.ptr);
      if (at == nullptr)
        accept_all();
      else if (!serve(*at, seen.events))
        end(at);
    }
    send_shares();
  }
}

void server::end(connection* at) const {
  close(at->fd);
  delete at;
}

void server::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    ++counts.accepted;
    add(fd, new connection{.fd = fd}, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  }
}

// False: it is over, as with all that follow.
bool server::serve(connection& at, std::uint32_t events) {
  if (!at.waits && (events & EPOLLOUT) != 0 && at.left > 0 && !send_share(at)) return false;
  if (at.waits) return true;  // its turn comes, and shows an end too
  return (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) == 0 || read(at);
}

bool server::read(connection& at) {
  for (;;) {
    const auto size = recv(at.fd, buffer_.data(), buffer_.size(), 0);
    if (size < 0) return errno == EAGAIN;
    if (size == 0) return false;
    if (!take(at, {buffer_.data(), static_cast<std::size_t>(size)})) return false;
    if (at.waits) return true;
    if (size < static_cast<ssize_t>(buffer_.size())) return true;
  }
}

bool server::take(connection& at, std::string_view bytes) {
  if (at.tls == nullptr && at.request.empty() && bytes.front() == tls_hello) {
    at.tls.reset(SSL_new(context_));
    SSL_set_bio(at.tls.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(at.tls.get());
  }
  if (at.tls != nullptr) return take_tls(at, bytes);
  at.request += bytes;
  return !at.request.ends_with("\r\n\r\n") || answer_request(at);
}

bool server::take_tls(connection& at, std::string_view bytes) {
  auto* const tls = at.tls.get();
  counts.received += bytes.size();
  BIO_write(SSL_get_rbio(tls), bytes.data(), static_cast<int>(bytes.size()));
  if (!SSL_is_init_finished(tls) && SSL_do_handshake(tls) == 1)
    ++(SSL_session_reused(tls) == 1 ? counts.resumed : counts.full);
  std::array<char, 4096> text;
  for (int size = 0; (size = SSL_read(tls, text.data(), text.size())) > 0;)
    at.request.append(text.data(), static_cast<std::size_t>(size));
  if (at.request.ends_with("\r\n\r\n")) {
    ++counts.requests;
    at.request.clear();
    SSL_write(tls, ok_answer.data(), static_cast<int>(ok_answer.size()));
  }
  char* out = nullptr;
  const auto size = BIO_get_mem_data(SSL_get_wbio(tls), &out);
  if (size <= 0) return true;
  counts.sent += static_cast<std::uint64_t>(size);
  const auto done = send(at.fd, out, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  BIO_reset(SSL_get_wbio(tls));
  return done == size;  // so little always fits
}

bool server::answer_request(connection& at) {
  const std::string request = std::move(at.request);
  at.request.clear();
  at.closes = request.find("onnection: close") != std::string::npos;
  if (request.starts_with("GET /large")) {
    at.left = large_size;
    if (send(at.fd, large_head.data(), large_head.size(), MSG_NOSIGNAL | MSG_MORE) < 0)
      return false;
    return send_share(at);
  }
  if (request.starts_with("GET /counts")) return send_text(at, counts_answer());
  return send_text(at, at.closes ? last_answer : small_answer);
}

bool server::send_text(const connection& at, std::string_view text) {
  return send(at.fd, text.data(), text.size(), MSG_NOSIGNAL) > 0 && !at.closes;
}

bool server::send_share(connection& at) {
  auto offset = static_cast<off_t>(large_size - at.left);
  const auto size = sendfile(at.fd, large_, &offset, std::min(at.left, share));
  if (size < 0) return errno == EAGAIN;
  at.left -= static_cast<std::size_t>(size);
  if (at.left == 0) return !at.closes && read(at);  // an end that came meanwhile
  at.waits = true;
  waiting_.push_back(&at);
  return true;
}

void server::send_shares() {
  for (auto* const at : std::exchange(waiting_, {})) {
    at->waits = false;
    if (!send_share(*at)) end(at);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: bench_server PORT CERTIFICATE KEY\n", stderr);
    return 64;
  }
  std::signal(SIGPIPE, SIG_IGN);
  server(static_cast<std::uint16_t>(std::atoi(argv[1])), argv[2], argv[3]).run();
}
