#include "proxy/client_hello.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace kubelane::proxy {
namespace {

using bytes = std::vector<std::uint8_t>;

bytes operator+(bytes left, const bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

bytes number(std::size_t value, int width) {
  bytes result;
  for (int shift = 8 * (width - 1); shift >= 0; shift -= 8)
    result.push_back(static_cast<std::uint8_t>(value >> shift));
  return result;
}

bytes vector_of(const bytes& content, int width) {
  return number(content.size(), width) + content;
}

bytes extension(int type, std::size_t size) {
  return number(static_cast<std::size_t>(type), 2) + vector_of(bytes(size, 0), 2);
}

const bytes server_name = extension(0, 20);
const bytes early_data = extension(42, 0);

bytes message(const bytes& body) {
  return bytes{1} + vector_of(body, 3);
}

bytes body_without_extensions() {
  return bytes{3, 3} + bytes(32, 7) + vector_of(bytes(32, 9), 1) + vector_of({0x13, 0x01}, 2) +
         vector_of({0}, 1);
}

bytes hello_message(const bytes& extensions) {
  return message(body_without_extensions() + vector_of(extensions, 2));
}

bytes record(const bytes& payload) {
  return bytes{22, 3, 1} + vector_of(payload, 2);
}

// The message in records of at most `size` bytes.
bytes records(const bytes& whole, std::size_t size) {
  bytes result;
  for (std::size_t at = 0; at < whole.size(); at += size) {
    const auto end = std::min(at + size, whole.size());
    result = result + record(bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                   whole.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  return result;
}

TEST(ClientHello, NothingIsEmpty) {
  EXPECT_EQ(classify_flight({}), flight::empty);
}

TEST(ClientHello, AWholeHelloIsOne) {
  EXPECT_EQ(classify_flight(record(hello_message(server_name))), flight::hello);
}

TEST(ClientHello, WithoutExtensionsItIsOneToo) {
  EXPECT_EQ(classify_flight(record(message(body_without_extensions()))), flight::hello);
}

TEST(ClientHello, EveryShorterPrefixIsPartial) {
  const auto whole = record(hello_message(server_name));
  for (std::size_t size = 1; size < whole.size(); ++size)
    EXPECT_EQ(classify_flight({whole.data(), size}), flight::partial_hello) << size;
}

TEST(ClientHello, ItMaySpanRecordsOfAnySize) {
  const auto whole = hello_message(server_name + extension(51, 1216));
  for (const std::size_t size : {1U, 3U, 4U, 5U, 100U, 512U}) {
    const auto in_records = records(whole, size);
    EXPECT_EQ(classify_flight(in_records), flight::hello) << size;
    for (std::size_t part = 1; part < in_records.size(); part += 7)
      EXPECT_EQ(classify_flight({in_records.data(), part}), flight::partial_hello) << size;
  }
}

TEST(ClientHello, EarlyDataMakesItAnother) {
  EXPECT_EQ(classify_flight(record(hello_message(server_name + early_data))), flight::other);
  EXPECT_EQ(classify_flight(records(hello_message(server_name + early_data), 50)), flight::other);
}

TEST(ClientHello, AnyByteBehindItMakesItAnother) {
  EXPECT_EQ(classify_flight(record(hello_message(server_name)) + bytes{23}), flight::other);
  EXPECT_EQ(classify_flight(record(hello_message(server_name)) + bytes{22}), flight::other);
  EXPECT_EQ(classify_flight(record(hello_message(server_name) + bytes{0})), flight::other);
}

TEST(ClientHello, AnotherProtocolIsAnother) {
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  EXPECT_EQ(classify_flight(bytes(request.begin(), request.end())), flight::other);
  EXPECT_EQ(classify_flight(bytes{0x80, 0x2e, 1}), flight::other) << "SSL 2";
  EXPECT_EQ(classify_flight(bytes{22, 2}), flight::other);
  EXPECT_EQ(classify_flight(bytes{22, 3, 5}), flight::other);
}

TEST(ClientHello, AnotherHandshakeMessageIsAnother) {
  EXPECT_EQ(classify_flight(record({2, 0, 0, 1, 0})), flight::other);
}

TEST(ClientHello, AnAlertBetweenItsRecordsMakesItAnother) {
  const auto whole = records(hello_message(server_name), 50);
  const auto first = bytes(whole.begin(), whole.begin() + 55);
  EXPECT_EQ(classify_flight(first + bytes{21, 3, 3, 0, 2, 1, 0}), flight::other);
}

TEST(ClientHello, ARecordOfNoBytesOrTooManyIsAnother) {
  EXPECT_EQ(classify_flight(bytes{22, 3, 1, 0, 0}), flight::other);
  EXPECT_EQ(classify_flight(bytes{22, 3, 1, 0x40, 1}), flight::other);
}

TEST(ClientHello, OneThatCannotFitIsAnotherBeforeItIsWhole) {
  EXPECT_EQ(classify_flight(record({1, 0, 0x40, 0})), flight::other);
}

TEST(ClientHello, LengthsThatDoNotMatchMakeItAnother) {
  EXPECT_EQ(classify_flight(record(message(body_without_extensions() + number(9, 2)))),
            flight::other);
  EXPECT_EQ(classify_flight(record(message(body_without_extensions() + bytes{0}))), flight::other);
  EXPECT_EQ(classify_flight(record(message({3, 3}))), flight::other);
  const auto lying = number(0, 2) + number(9, 2);  // an extension longer than all of them
  EXPECT_EQ(classify_flight(record(message(body_without_extensions() + vector_of(lying, 2)))),
            flight::other);
  const auto long_session = bytes{3, 3} + bytes(32, 7) + vector_of(bytes(33, 9), 1) +
                            vector_of({0x13, 0x01}, 2) + vector_of({0}, 1);
  EXPECT_EQ(classify_flight(record(message(long_session))), flight::other);
}

}  // namespace
}  // namespace kubelane::proxy
