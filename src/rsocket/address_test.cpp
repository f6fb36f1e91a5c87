#include "rsocket/address.h"

#include <gtest/gtest.h>

#include <array>

namespace ringbolt::rsocket {
namespace {

Address ipv4(const char* text, uint16_t port = 0) {
  sockaddr_in given{};
  given.sin_family = AF_INET;
  given.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, text, &given.sin_addr), 1);
  return Address::from(reinterpret_cast<const sockaddr&>(given));
}

Address ipv6(const char* text, uint32_t scope = 0, uint16_t port = 0) {
  sockaddr_in6 given{};
  given.sin6_family = AF_INET6;
  given.sin6_port = htons(port);
  given.sin6_scope_id = scope;
  EXPECT_EQ(::inet_pton(AF_INET6, text, &given.sin6_addr), 1);
  return Address::from(reinterpret_cast<const sockaddr&>(given));
}

bool is_same(const Address& a, const Address& b) { return !(a < b) && !(b < a); }

TEST(Address, is_taken_from_what_a_program_passes) {
  Address given = ipv4("10.0.0.7", 6379);
  const auto taken = Address::from(given.get(), sizeof(sockaddr_in));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->family(), AF_INET);
  EXPECT_EQ(taken->port(), 6379);
  EXPECT_EQ(taken->length(), sizeof(sockaddr_in));
}

TEST(Address, that_is_too_short_too_long_or_of_another_family_is_none) {
  Address given = ipv6("fd77::1");
  EXPECT_FALSE(Address::from(nullptr, sizeof(sockaddr_in)));
  EXPECT_FALSE(Address::from(given.get(), 1));
  EXPECT_FALSE(Address::from(given.get(), sizeof(sockaddr_in6) - 1));
  EXPECT_FALSE(Address::from(given.get(), sizeof(sockaddr_storage) + 1));
  given.storage.ss_family = AF_UNIX;
  EXPECT_FALSE(Address::from(given.get(), sizeof(sockaddr_storage)));
}

/// ip(7) gives sin_zero no meaning, and a program may pass a sockaddr_storage that it has not cleared.
TEST(Address, is_the_same_whatever_lies_around_it) {
  const Address plain = ipv4("10.0.0.7", 6379);
  sockaddr_storage dirty;
  std::memset(&dirty, 0xa5, sizeof dirty);
  auto& address = reinterpret_cast<sockaddr_in&>(dirty);
  address.sin_family = AF_INET;
  address.sin_port = htons(6379);
  ::inet_pton(AF_INET, "10.0.0.7", &address.sin_addr);
  for (const size_t bytes : {sizeof(sockaddr_in), sizeof(sockaddr_in6), sizeof dirty}) {
    const auto length = static_cast<socklen_t>(bytes);
    const auto taken = Address::from(reinterpret_cast<const sockaddr*>(&dirty), length);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(is_same(*taken, plain)) << length;
  }
  EXPECT_TRUE(is_same(Address::from(reinterpret_cast<const sockaddr&>(dirty)), plain));
}

TEST(Address, differs_by_host_port_and_family) {
  EXPECT_FALSE(is_same(ipv4("10.0.0.7", 1), ipv4("10.0.0.7", 2)));
  EXPECT_FALSE(is_same(ipv4("10.0.0.7", 1), ipv4("10.0.0.8", 1)));
  EXPECT_FALSE(is_same(ipv4("0.0.0.0"), ipv6("::")));
  EXPECT_FALSE(is_same(ipv6("fe80::1", 2), ipv6("fe80::1", 3)));
}

TEST(Address, gets_its_port_in_either_family) {
  for (Address address : {ipv4("10.0.0.7", 1), ipv6("fd77::1", 0, 1)}) {
    address.set_port(0xfedc);
    EXPECT_EQ(address.port(), 0xfedc);
  }
}

TEST(Address, of_this_host_alone_leads_over_no_cable) {
  for (const Address& address : {ipv4("0.0.0.0"), ipv4("127.0.0.1"), ipv6("::"), ipv6("::1")}) {
    EXPECT_TRUE(address.is_any_or_loopback());
  }
  EXPECT_FALSE(ipv4("10.0.0.7").is_any_or_loopback());
  EXPECT_FALSE(ipv6("fe80::1").is_any_or_loopback());
}

TEST(Address, that_means_another_host_on_each_interface_is_not_routable) {
  EXPECT_TRUE(ipv4("10.0.0.7").is_routable());
  EXPECT_TRUE(ipv6("fd77::1").is_routable());
  EXPECT_FALSE(ipv4("0.0.0.0").is_routable());
  EXPECT_FALSE(ipv6("::").is_routable());
  EXPECT_FALSE(ipv6("fe80::1").is_routable());
}

TEST(Address, gets_the_interface_that_a_link_local_one_lacks) {
  const Address local = ipv6("fe80::2", 5);
  const auto scope_of = [&](Address address) {
    address.complete_scope(local);
    return reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_scope_id;
  };
  EXPECT_EQ(scope_of(ipv6("fe80::1")), 5U);
  EXPECT_EQ(scope_of(ipv6("fe80::1", 3)), 3U) << "it has one";
  EXPECT_EQ(scope_of(ipv6("fd77::1")), 0U) << "it needs none";
}

TEST(Address, is_copied_as_far_as_there_is_room) {
  const Address address = ipv4("10.0.0.7", 6379);
  std::array<unsigned char, 64> room;
  room.fill(0xee);
  socklen_t length = 4;
  address.copy_to(reinterpret_cast<sockaddr*>(room.data()), &length);
  EXPECT_EQ(length, sizeof(sockaddr_in)) << "as long as it is";
  EXPECT_EQ(room[3], 6379 & 0xff);
  EXPECT_EQ(room[4], 0xee);
  address.copy_to(nullptr, &length);
  address.copy_to(reinterpret_cast<sockaddr*>(room.data()), nullptr);
  EXPECT_EQ(room[4], 0xee);
}

}  // namespace
}  // namespace ringbolt::rsocket
