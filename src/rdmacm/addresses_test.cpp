#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "rdmacm/devices.h"
#include "rdmacm/explanations.h"

namespace ringbolt::rdmacm {
namespace {

const sockaddr* plain(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr*>(&address); }

TEST(SocketAddresses, come_back_as_they_were_written) {
  std::mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    const auto byte = [&random] { return static_cast<uint8_t>(random()); };
    wire::Address address = wire::ipv4_address(byte(), byte(), byte(), byte());
    if (i % 2 == 0) {
      for (uint8_t& one : address) {
        one = byte();
      }
    }
    const auto port = static_cast<uint16_t>(random());
    sockaddr_storage written{};
    std::memset(&written, 0xff, sizeof written);  // what lay there before
    write_address(address, port, 9, written);
    EXPECT_EQ(address_of(plain(written)), address);
    EXPECT_EQ(port_of(plain(written)), port);
    set_port(reinterpret_cast<sockaddr*>(&written), static_cast<uint16_t>(~port));
    EXPECT_EQ(port_of(plain(written)), static_cast<uint16_t>(~port));
    EXPECT_EQ(address_of(plain(written)), address) << "the port alone was changed";
    if (written.ss_family == AF_INET6) {
      EXPECT_EQ(reinterpret_cast<sockaddr_in6&>(written).sin6_flowinfo, 0U);
      EXPECT_EQ(reinterpret_cast<sockaddr_in6&>(written).sin6_scope_id, is_link_local(address) ? 9U : 0U);
    }
  }
}

TEST(SocketAddresses, of_other_families_are_none) {
  sockaddr_storage odd{};
  for (const sa_family_t family : {sa_family_t{AF_UNSPEC}, sa_family_t{AF_UNIX}, sa_family_t{27}}) {
    odd.ss_family = family;
    EXPECT_FALSE(address_of(plain(odd)));
    EXPECT_EQ(port_of(plain(odd)), 0);
    set_port(reinterpret_cast<sockaddr*>(&odd), 5);
    EXPECT_EQ(text_of(*plain(odd)), "nowhere (family " + std::to_string(family) + ")");
  }
}

TEST(SocketAddresses, wildcards_loopback_and_links_have_their_bounds) {
  EXPECT_TRUE(is_any({}));
  EXPECT_TRUE(is_any(wire::ipv4_address(0, 0, 0, 0)));
  EXPECT_FALSE(is_any(wire::ipv4_address(0, 0, 0, 1)));
  EXPECT_TRUE(is_loopback(wire::ipv4_address(127, 0, 0, 0)));
  EXPECT_TRUE(is_loopback(wire::ipv4_address(127, 255, 255, 255)));
  EXPECT_FALSE(is_loopback(wire::ipv4_address(126, 255, 255, 255)));
  EXPECT_FALSE(is_loopback(wire::ipv4_address(128, 0, 0, 1)));
  wire::Address one{};
  one[15] = 1;
  EXPECT_TRUE(is_loopback(one));
  one[14] = 1;
  EXPECT_FALSE(is_loopback(one));
  for (const auto& [second, is_local] :
       {std::pair{uint8_t{0x7f}, false}, {uint8_t{0x80}, true}, {uint8_t{0xbf}, true}, {uint8_t{0xc0}, false}}) {
    EXPECT_EQ(is_link_local({0xfe, second}), is_local);  // RFC 4291, 2.5.6: fe80::/10
  }
}

TEST(SocketAddresses, are_told_as_people_write_them) {
  sockaddr_storage address{};
  write_address(wire::ipv4_address(10, 0, 0, 7), 7471, 0, address);
  EXPECT_EQ(text_of(*plain(address)), "10.0.0.7:7471");
  wire::Address local{0xfe, 0x80};
  local[15] = 1;
  write_address(local, 7471, 3, address);
  EXPECT_EQ(text_of(*plain(address)), "[fe80::1]:7471");
}

struct FreeAddresses {
  void operator()(rdma_addrinfo* info) const { rdma_freeaddrinfo(info); }
};
using Addresses = std::unique_ptr<rdma_addrinfo, FreeAddresses>;

Addresses look_up_address(const char* node, const char* service, const rdma_addrinfo* hints, int wanted = 0) {
  rdma_addrinfo* found = nullptr;
  EXPECT_EQ(rdma_getaddrinfo(node, service, hints, &found), wanted);
  return Addresses(found);
}

TEST(Lookup, of_a_numeric_address_goes_to_the_side_that_was_asked_for) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_TCP;
  const Addresses active = look_up_address("192.0.2.9", "7471", &hints);
  ASSERT_TRUE(active && active->ai_dst_addr != nullptr);
  EXPECT_EQ(active->ai_src_addr, nullptr);
  EXPECT_EQ(port_of(active->ai_dst_addr), 7471);
  EXPECT_EQ(active->ai_qp_type, IBV_QPT_RC);
  EXPECT_EQ(active->ai_port_space, RDMA_PS_TCP);
  EXPECT_EQ(active->ai_dst_len, static_cast<socklen_t>(sizeof(sockaddr_in)));
  hints.ai_flags |= RAI_PASSIVE;
  const Addresses passive = look_up_address("::1", "7471", &hints);
  ASSERT_TRUE(passive && passive->ai_src_addr != nullptr);
  EXPECT_EQ(passive->ai_dst_addr, nullptr);
  EXPECT_EQ(passive->ai_family, AF_INET6);
  const Addresses any = look_up_address(nullptr, "7471", &hints);
  ASSERT_TRUE(any && any->ai_src_addr != nullptr);
  EXPECT_TRUE(is_any(*address_of(any->ai_src_addr)));
}

TEST(Lookup, follows_the_queue_pair_to_the_port_space_and_back) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_qp_type = IBV_QPT_UD;
  EXPECT_EQ(look_up_address("192.0.2.9", "1", &hints)->ai_port_space, RDMA_PS_UDP);
  hints = {};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_port_space = RDMA_PS_UDP;
  EXPECT_EQ(look_up_address("192.0.2.9", "1", &hints)->ai_qp_type, IBV_QPT_UD);
  hints.ai_port_space = 0;
  hints.ai_qp_type = IBV_QPT_UC;
  const Addresses unreliable = look_up_address("192.0.2.9", "1", &hints);
  EXPECT_EQ(unreliable->ai_qp_type, IBV_QPT_UC);
  EXPECT_EQ(unreliable->ai_port_space, RDMA_PS_TCP);
}

TEST(Lookup, copies_addresses_that_are_given_and_says_what_is_no_name) {
  sockaddr_storage source{};
  sockaddr_storage target{};
  write_address(wire::ipv4_address(192, 0, 2, 1), 1, 0, source);
  write_address(wire::ipv4_address(192, 0, 2, 2), 2, 0, target);
  rdma_addrinfo hints{};
  hints.ai_src_addr = reinterpret_cast<sockaddr*>(&source);
  hints.ai_dst_addr = reinterpret_cast<sockaddr*>(&target);
  hints.ai_src_len = hints.ai_dst_len = sizeof(sockaddr_in);
  const Addresses copied = look_up_address(nullptr, nullptr, &hints);
  ASSERT_TRUE(copied);
  source = target = {};  // the program's, who may use them otherwise
  EXPECT_EQ(address_of(copied->ai_src_addr), wire::ipv4_address(192, 0, 2, 1));
  EXPECT_EQ(address_of(copied->ai_dst_addr), wire::ipv4_address(192, 0, 2, 2));
  rdma_addrinfo numeric{};
  numeric.ai_flags = RAI_NUMERICHOST;
  rdma_addrinfo* found = nullptr;
  EXPECT_EQ(rdma_getaddrinfo("not-a-number", "1", &numeric, &found), EAI_NONAME);
  EXPECT_EQ(found, nullptr);
}

TEST(Addresses, that_are_not_there_are_of_no_family) { EXPECT_EQ(address_of(nullptr), std::nullopt); }

}  // namespace
}  // namespace ringbolt::rdmacm
