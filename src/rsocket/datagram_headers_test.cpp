#include "rsocket/datagram_headers.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::rsocket {
namespace {

Address v4(const char* text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1);
  return Address::from(reinterpret_cast<const sockaddr&>(address));
}

Address v6(const char* text, uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return Address::from(reinterpret_cast<const sockaddr&>(address));
}

template <class Header>
std::vector<int> emitted(const Header& header) {
  std::vector<std::byte> out(header.bytes());
  header.emit(out);
  std::vector<int> numbers;
  for (const std::byte b : out) {
    numbers.push_back(std::to_integer<int>(b));
  }
  return numbers;
}

template <class Header>
std::optional<Header> parsed(const std::vector<int>& numbers) {
  std::vector<std::byte> in;
  for (const int n : numbers) {
    in.push_back(static_cast<std::byte>(n));
  }
  return Header::parse(in);
}

bool same(const Address& a, const Address& b) { return std::memcmp(&a.storage, &b.storage, sizeof a.storage) == 0; }

TEST(DatagramHeader, lies_as_the_protocol_says) {
  EXPECT_EQ(emitted(DatagramHeader{v4("10.1.2.3", 7174)}), (std::vector<int>{4, 8, 0x1c, 0x06, 10, 1, 2, 3}));
  EXPECT_EQ(emitted(DatagramHeader{v6("fd77::102", 7174)}),
            (std::vector<int>{6, 24, 0x1c, 0x06, 0, 0, 0, 0, 0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}));
}

TEST(DatagramHeader, returns_what_was_put_in) {
  for (const Address& address : {v4("10.1.2.3", 1), v6("fe80::1", 65535)}) {
    const auto header = parsed<DatagramHeader>(emitted(DatagramHeader{address}));
    ASSERT_TRUE(header);
    EXPECT_TRUE(same(header->source, address));
  }
}

TEST(DatagramHeader, refuses_every_beginning_and_wrong_versions_and_lengths) {
  for (const Address& address : {v4("10.1.2.3", 1), v6("fe80::1", 65535)}) {
    auto bytes = emitted(DatagramHeader{address});
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parsed<DatagramHeader>({bytes.begin(), bytes.begin() + static_cast<long>(length)}));
    }
    bytes[1] = 9;
    EXPECT_FALSE(parsed<DatagramHeader>(bytes));
    bytes[0] = 5;
    EXPECT_FALSE(parsed<DatagramHeader>(bytes));
  }
}

TEST(GreetingHeader, lies_as_the_protocol_says) {
  const GreetingHeader header{GreetingHeader::Op::control, 0xabcdef, v4("10.1.2.3", 0)};
  EXPECT_EQ(emitted(header), (std::vector<int>{0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0xab, 0xcd, 0xef, 10, 1, 2, 3}));
}

TEST(GreetingHeader, returns_what_was_put_in_and_refuses_every_beginning) {
  for (const Address& address : {v4("10.1.2.3", 0), v6("fe80::1", 0)}) {
    const auto bytes = emitted(GreetingHeader{GreetingHeader::Op::data, 17, address});
    const auto header = parsed<GreetingHeader>(bytes);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->op, GreetingHeader::Op::data);
    EXPECT_EQ(header->qpn, 17U);
    EXPECT_TRUE(same(header->address, address));
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parsed<GreetingHeader>({bytes.begin(), bytes.begin() + static_cast<long>(length)}));
    }
    for (const size_t at : {size_t{0}, size_t{4}, size_t{6}}) {
      auto wrong = bytes;
      wrong[at] ^= 0x10;
      EXPECT_FALSE(parsed<GreetingHeader>(wrong));
    }
  }
}

}  // namespace
}  // namespace ringbolt::rsocket
