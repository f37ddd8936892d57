#include "health/probe_connection.hpp"

#include "net/socket.hpp"
#include "net/timeout.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace kubelane::health {
namespace {

using asio::ip::tcp;
using net::error_code;
using namespace std::chrono_literals;

constexpr auto look_every = 100ms;
constexpr auto silent_after = 1s;
constexpr std::uint32_t silent_retransmissions = 2;

// The kernel itself gives a vanished host up after four seconds, idle or not.
void set_options(int descriptor) {
  constexpr unsigned milliseconds_unacknowledged = 4'000;
  net::send_at_once(descriptor);
  net::keep_alive_on(descriptor, {.idle = 1s, .interval = 1s, .count = 3});
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds_unacknowledged,
               sizeof milliseconds_unacknowledged);
}

bool is_out_of_descriptors(error_code error) {
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system;
}

std::string request_text(const std::string& path, const net::credentials& identity) {
  net::http_request request;
  request.target = path;
  request.headers.emplace_back("Host", identity.server_name());
  request.headers.emplace_back("User-Agent", "kubelane/" KUBELANE_VERSION);
  request.headers.emplace_back("Accept", "*/*");
  if (!identity.authorization().empty())
    request.headers.emplace_back("Authorization", identity.authorization());
  return to_text(request);
}

}  // namespace

probe_connection::probe_connection(asio::any_io_executor executor, net::endpoint address,
                                   net::descriptor_reserve& reserve, const probe_events& events)
    : executor_(executor),
      address_(std::move(address)),
      reserve_(reserve),
      events_(events),
      stream_(tcp::socket(executor)) {}

probe_connection::~probe_connection() {
  stream_.close();
  reserve_.refill();
}

error_code probe_connection::open(tcp::socket& socket) {
  const auto protocol = address_.address().is_v6() ? tcp::v6() : tcp::v4();
  error_code error;
  socket.open(protocol, error);
  while (is_out_of_descriptors(error) && reserve_.give_up()) socket.open(protocol, error);
  if (!error) set_options(socket.native_handle());
  return error;
}

asio::awaitable<error_code> probe_connection::connect(time_point deadline) {
  tcp::socket socket(executor_);
  const auto unopened = open(socket);
  if (unopened) co_return unopened;
  const tcp::endpoint target(address_.address(), address_.port());
  auto attempt = socket.async_connect(target, net::nothrow);
  auto [error] = co_await net::with_timeout(deadline - clock::now(), std::move(attempt));
  if (!error) stream_ = net::stream(std::move(socket));
  co_return error;
}

// Repeats a step that loses nothing when it is cut short, looking at the connection in between.
template <class Step>
asio::awaitable<error_code> probe_connection::repeat(Step step, time_point deadline) {
  for (bool last = false;;) {
    const auto left = std::max<clock::duration>(deadline - clock::now(), 0ms);
    auto waiting = step();
    auto [error] =
        co_await net::with_timeout(std::min<clock::duration>(left, look_every), std::move(waiting));
    note_heard();
    if (error != asio::error::timed_out || last) co_return error;
    look_for_silence();
    // What came while this loop was late is in the kernel: the last try waits for nothing.
    last = clock::now() >= deadline;
  }
}

asio::awaitable<error_code> probe_connection::secure(net::tls_context context,
                                                     net::tls_session session,
                                                     time_point deadline) {
  if (!stream_.is_tls()) begin_round();
  const auto step = [&] { return stream_.client_handshake(context, session); };
  auto handshake = repeat(step, deadline);
  const auto error = co_await std::move(handshake);
  const auto expiry = stream_.peer_expiry();
  if (error != asio::error::timed_out && expiry && events_.on_certificate)
    events_.on_certificate(*expiry);
  if (!error) secured_under_ = std::move(context);
  co_return error;
}

asio::awaitable<error_code> probe_connection::ask(std::string path,
                                                  const net::credentials& identity,
                                                  time_point deadline) {
  if (!std::exchange(asked_, true)) {
    begin_round();
    const auto text = request_text(path, identity);
    auto sending = stream_.write(text);
    auto [unsent] = co_await net::with_timeout(deadline - clock::now(), std::move(sending));
    // Whatever else keeps us from sending, the peer may have said why before it closed.
    if (unsent == asio::error::timed_out) co_return unsent;
  }
  const auto step = [&] { return reader_.read(stream_); };
  auto reading = repeat(step, deadline);
  co_return co_await std::move(reading);
}

net::http_response probe_connection::take_answer() {
  asked_ = false;
  ++answers_;
  return reader_.take();
}

std::chrono::microseconds probe_connection::round_trip() const noexcept {
  const auto view = stream_.kernel();
  return view ? view->rtt : std::chrono::microseconds(0);
}

void probe_connection::begin_round() {
  const auto view = stream_.kernel();
  sent_ = clock::now();
  repeated_then_ = view ? view->retransmitted : 0;
  silence_told_ = false;
}

void probe_connection::note_heard() {
  const bool more = heard() > std::exchange(heard_then_, heard());
  if (more && testifies_ && events_.on_heard) events_.on_heard();
}

void probe_connection::look_for_silence() {
  const auto view = stream_.kernel();
  if (!view || !sent_ || silence_told_) return;
  const bool silent = view->unacknowledged > 0 && view->since_last_ack >= silent_after &&
                      view->retransmitted >= repeated_then_ + silent_retransmissions &&
                      clock::now() - *sent_ >= silent_after;
  if (!silent) return;
  silence_told_ = true;
  if (events_.on_host_silent) events_.on_host_silent("request not acknowledged");
}

}  // namespace kubelane::health
