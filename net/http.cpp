#include "net/http.hpp"

#include <boost/asio/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>

namespace kubelane::net {
namespace {

namespace http = boost::beast::http;

template <bool IsRequest>
using message_of = http::message<IsRequest, http::string_body>;

template <bool IsRequest>
std::string serialize(message_of<IsRequest>& message) {
  http::serializer<IsRequest, http::string_body> serializer(message);
  std::string text;
  error_code error;
  while (!serializer.is_done()) {
    std::size_t size = 0;
    auto append = [&](error_code&, const auto& buffers) {
      for (auto part = asio::buffer_sequence_begin(buffers);
           part != asio::buffer_sequence_end(buffers); ++part) {
        const asio::const_buffer bytes(*part);
        text.append(static_cast<const char*>(bytes.data()), bytes.size());
        size += bytes.size();
      }
    };
    serializer.next(error, append);
    serializer.consume(size);
  }
  return text;
}

template <bool IsRequest, class Message>
void fill(message_of<IsRequest>& out, const Message& from) {
  out.version(11);
  for (const auto& [name, value] : from.headers) out.insert(name, value);
  out.body() = from.body;
  out.keep_alive(from.keep_alive);
  out.prepare_payload();
}

template <class Fields>
http_headers copy_headers(const Fields& from) {
  http_headers result;
  for (const auto& field : from) result.emplace_back(field.name_string(), field.value());
  return result;
}

// Feeds a stream's bytes to a Beast parser; keeps what follows the message.
template <bool IsRequest>
class message_reader {
 public:
  explicit message_reader(http_limits limits) : limits_(limits) { restart(); }

  void restart() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header));
    parser_->body_limit(limits_.body);
  }

  auto& parser() { return *parser_; }
  bool has_leftover() const { return !pending_.empty(); }

  // True once the message is complete or broken.
  bool parse(error_code& error) {
    while (!pending_.empty() && !parser_->is_done()) {
      const auto used = parser_->put(asio::buffer(pending_), error);
      pending_.erase(0, used);
      const bool wants_more = error == http::error::need_more;
      if (wants_more) error = {};
      if (error) return true;
      if (wants_more || used == 0) break;
    }
    return parser_->is_done();
  }

  asio::awaitable<stream::status> read(stream& from) {
    std::array<char, 4096> buffer;
    for (error_code error;;) {
      if (parse(error)) co_return error;
      auto [failure, n] = co_await from.read_some(asio::buffer(buffer));
      if (failure == asio::error::eof && parser_->got_some()) {
        parser_->put_eof(error);
        if (error == http::error::partial_message) error = stream_error::truncated;
        co_return error;
      }
      if (failure) co_return failure;
      pending_.append(buffer.data(), n);
    }
  }

 private:
  http_limits limits_;
  std::string pending_;
  std::optional<http::parser<IsRequest, http::string_body>> parser_;
};

}  // namespace

std::optional<std::string_view> find_header(const http_headers& headers, std::string_view name) {
  const auto same = [&](const auto& header) { return boost::beast::iequals(header.first, name); };
  const auto found = std::find_if(headers.begin(), headers.end(), same);
  if (found == headers.end()) return std::nullopt;
  return found->second;
}

std::string to_text(const http_request& request) {
  http::request<http::string_body> message;
  message.method_string(request.method);
  message.target(request.target);
  fill(message, request);
  return serialize(message);
}

std::string to_text(const http_response& response) {
  http::response<http::string_body> message;
  message.result(response.status);
  message.reason(response.reason);
  fill(message, response);
  return serialize(message);
}

struct http_response_reader::impl : message_reader<false> {
  using message_reader::message_reader;
};

http_response_reader::http_response_reader(http_limits limits)
    : impl_(std::make_unique<impl>(limits)) {}
http_response_reader::~http_response_reader() = default;
http_response_reader::http_response_reader(http_response_reader&&) noexcept = default;
http_response_reader& http_response_reader::operator=(http_response_reader&&) noexcept = default;

asio::awaitable<stream::status> http_response_reader::read(stream& from) {
  for (;;) {
    auto [error] = co_await impl_->read(from);
    if (error || impl_->parser().get().result_int() / 100 != 1) co_return error;
    impl_->restart();
  }
}

http_response http_response_reader::take() {
  auto& parser = impl_->parser();
  const bool reusable = parser.keep_alive() && !parser.need_eof() && !impl_->has_leftover();
  auto message = parser.release();
  http_response result{.status = message.result_int(),
                       .reason = std::string(message.reason()),
                       .headers = copy_headers(message),
                       .body = std::move(message.body()),
                       .keep_alive = reusable};
  impl_->restart();
  return result;
}

struct http_request_reader::impl : message_reader<true> {
  using message_reader::message_reader;
};

http_request_reader::http_request_reader(http_limits limits)
    : impl_(std::make_unique<impl>(limits)) {}
http_request_reader::~http_request_reader() = default;

asio::awaitable<stream::status> http_request_reader::read(stream& from) {
  return impl_->read(from);
}

http_request http_request_reader::take() {
  auto& parser = impl_->parser();
  const bool reusable = parser.keep_alive();
  auto message = parser.release();
  http_request result{.method = std::string(message.method_string()),
                      .target = std::string(message.target()),
                      .headers = copy_headers(message),
                      .body = std::move(message.body()),
                      .keep_alive = reusable};
  impl_->restart();
  return result;
}

asio::awaitable<std::tuple<error_code, http_response>> exchange(stream& over, http_request request,
                                                                http_limits limits) {
  using result = std::tuple<error_code, http_response>;
  const auto text = to_text(request);
  auto [unsent] = co_await over.write(text);
  if (unsent) co_return result(unsent, http_response());
  http_response_reader reader(limits);
  auto [unread] = co_await reader.read(over);
  if (unread) co_return result(unread, http_response());
  co_return result(error_code(), reader.take());
}

}  // namespace kubelane::net
