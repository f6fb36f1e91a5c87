// The way back to who sent a datagram: RoCE v2 (InfiniBand Architecture Specification, annex 17), RFC 4291.

#include "abi/answer_route.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ringbolt::abi {
namespace {

using Bytes = std::array<uint8_t, sizeof(ibv_grh)>;

ibv_grh header(const Bytes& bytes) {
  ibv_grh grh{};
  std::memcpy(&grh, bytes.data(), sizeof grh);
  return grh;
}
std::array<uint8_t, 16> raw(const ibv_gid& gid) {
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return bytes;
}
/// An IPv4 header in the last 20 bytes, from 10.1.2.3 to 10.4.5.6.
Bytes ipv4_header() {
  Bytes bytes{};
  bytes[20] = 0x45;
  bytes[21] = 0xb8;
  const std::array<uint8_t, 8> addresses{10, 1, 2, 3, 10, 4, 5, 6};
  std::memcpy(&bytes[32], addresses.data(), addresses.size());
  return bytes;
}

TEST(ReadRoute, of_ipv6_is_the_header_itself) {
  Bytes bytes{0x6a, 0xb1, 0x23, 0x45};  // version 6, traffic class ab, flow label 12345
  for (uint8_t i = 0; i < 32; ++i) {
    bytes[8 + i] = i;
  }
  const Route route = read_route(header(bytes));
  EXPECT_EQ(route.traffic_class, 0xab);
  EXPECT_EQ(route.flow_label, 0x12345U);
  EXPECT_EQ(raw(route.source)[15], 15);
  EXPECT_EQ(raw(route.destination)[0], 16);
}

TEST(ReadRoute, of_ipv4_lies_in_the_last_twenty_bytes) {
  const Route route = read_route(header(ipv4_header()));
  EXPECT_EQ(raw(route.source), (std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3}));
  EXPECT_EQ(raw(route.destination), (std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 4, 5, 6}));
  EXPECT_EQ(route.traffic_class, 0xb8) << "the type of service";
  EXPECT_EQ(route.flow_label, 0U);
}

TEST(ReadRoute, an_ipv6_address_that_looks_like_ipv4_is_none) {
  Bytes bytes = ipv4_header();
  bytes[0] = 0x60;
  const Route route = read_route(header(bytes));
  EXPECT_EQ(raw(route.source)[12], 0x45) << "the byte 20 of the header is in its source address";
}

TEST(ReadRoute, ipv4_options_are_not_taken_for_a_header) {
  Bytes bytes = ipv4_header();
  bytes[20] = 0x46;
  EXPECT_NE(raw(read_route(header(bytes)).source)[10], 0xff);
}

TEST(AnswerTo, turns_the_way_round) {
  ibv_wc wc{};
  wc.slid = 7;
  wc.sl = 3;
  wc.dlid_path_bits = 5;
  ibv_ah_attr answer = answer_to(wc, 1);
  EXPECT_EQ(answer.dlid, 7);
  EXPECT_EQ(answer.sl, 3);
  EXPECT_EQ(answer.src_path_bits, 5);
  EXPECT_EQ(answer.port_num, 1);
  EXPECT_EQ(answer.is_global, 0);
  const Route route = read_route(header(ipv4_header()));
  add_route(answer, route, 4);
  EXPECT_EQ(answer.is_global, 1);
  EXPECT_EQ(raw(answer.grh.dgid), raw(route.source)) << "to its source";
  EXPECT_EQ(answer.grh.sgid_index, 4);
  EXPECT_EQ(answer.grh.traffic_class, 0xb8);
  EXPECT_EQ(answer.grh.hop_limit, 255);
}

TEST(EthernetAddressOf, a_gid_that_was_made_of_one_gives_it_back) {
  // RFC 4291, appendix A: ff fe in the middle, and the second bit of the first byte turned.
  ibv_gid gid{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x11, 0x22, 0xff, 0xfe, 0x33, 0x44, 0x55}};
  EXPECT_EQ(ethernet_address_of(gid), (EthernetAddress{0x00, 0x11, 0x22, 0x33, 0x44, 0x55}));
  gid.raw[12] = 0xfd;
  EXPECT_EQ(ethernet_address_of(gid), (EthernetAddress{0x02, 0, 0xfd, 0x33, 0x44, 0x55}))
      << "made of its last bytes, locally administered";
}

}  // namespace
}  // namespace ringbolt::abi
