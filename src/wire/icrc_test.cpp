#include "wire/icrc.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/crc.h"
#include "wire/golden_support.h"
#include "wire/headers.h"
#include "wire/ipv4_id.h"
#include "wire/packet.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using golden::Datagram;

const Flow kFlow4{ipv4_address(10, 77, 0, 1), ipv4_address(10, 77, 0, 2), 0xd872, kRocePort};
const Flow kFlow6{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                  {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2},
                  0xd872,
                  kRocePort};

std::span<const std::byte> covered(const Bytes& packet) { return std::span(packet).first(packet.size() - kIcrcBytes); }

/// A packet of `words` words between UDP header and ICRC, all different.
Bytes counting_packet(size_t words) {
  Bytes packet(words * 4 + kIcrcBytes);
  for (size_t i = 0; i < packet.size(); ++i) {
    packet[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  return packet;
}

TEST(Icrc, register_after_link_header_is_the_published_one) {
  const Bytes ones(8, std::byte{0xff});
  EXPECT_EQ(~base::crc32(0, ones), 0xdebb20e3U);
}

TEST(Icrc, is_that_of_golden_packets) {
  for (const Datagram& datagram : golden::all_datagrams()) {
    Bytes made = datagram.packet;
    std::fill(made.end() - kIcrcBytes, made.end(), std::byte{0});
    put_icrc(datagram.flow, datagram.ipv4_id, made);
    EXPECT_EQ(made, datagram.packet) << datagram.name;
    EXPECT_TRUE(check_icrc(datagram.flow, datagram.packet)) << datagram.name;
    if (is_ipv4(datagram.flow)) {
      EXPECT_EQ(find_ipv4_id(datagram.flow, datagram.packet), datagram.ipv4_id) << datagram.name;
    }
  }
}

TEST(Icrc, changes_with_each_identification_bit_as_published) {
  const Datagram datagram = golden::roce_datagrams().at(2);
  const uint32_t zero = icrc(datagram.flow, 0, covered(datagram.packet));
  const std::array<uint32_t, 4> expected{0x4713f6fb, 0x8e27edf6, 0xc73eddad, 0x550cbd1b};
  for (size_t bit = 0; bit < expected.size(); ++bit) {
    EXPECT_EQ(icrc(datagram.flow, static_cast<uint16_t>(1U << bit), covered(datagram.packet)) ^ zero, expected[bit]);
    EXPECT_EQ(solve_ipv4_id(expected[bit], datagram.packet.size()), 1U << bit);
  }
}

TEST(Icrc, finds_every_identification) {
  Bytes packet = counting_packet(5);
  for (uint32_t id = 0; id <= 0xffff; ++id) {
    put_icrc(kFlow4, static_cast<uint16_t>(id), packet);
    ASSERT_EQ(find_ipv4_id(kFlow4, packet), id);
  }
}

TEST(Icrc, finds_identification_at_every_length) {
  // To 4 KiB and a bit in every step, beyond in large ones up to what UDP can carry.
  for (size_t words = 3; words <= 16375; words += words < 1100 ? 1 : 611) {
    Bytes packet = counting_packet(words);
    for (const uint16_t id : std::array<uint16_t, 4>{0x0001, 0x8000, 0x718c, 0xffff}) {
      put_icrc(kFlow4, id, packet);
      ASSERT_EQ(find_ipv4_id(kFlow4, packet), id) << words << " words";
    }
  }
}

TEST(Icrc, finds_the_same_identification_whichever_is_likely) {
  for (const size_t words : {3U, 4U, 7U, 19U, 20U, 260U, 1027U}) {
    Bytes packet = counting_packet(words);
    for (const uint16_t id : std::array<uint16_t, 5>{0, 1, 63, 0x718c, 0xffff}) {
      put_icrc(kFlow4, id, packet);
      for (const uint16_t likely : std::array<uint16_t, 5>{0, 1, 63, 0x718c, 0xfffe}) {
        ASSERT_EQ(find_ipv4_id(kFlow4, packet, likely), id) << words << " words, likely " << likely;
        ASSERT_TRUE(check_icrc(kFlow4, packet, likely));
      }
      packet.back() ^= std::byte{1};
      for (const uint16_t likely : std::array<uint16_t, 3>{0, 1, 63}) {
        EXPECT_EQ(find_ipv4_id(kFlow4, packet, likely), find_ipv4_id(kFlow4, packet)) << words << " words";
      }
    }
    put_icrc(kFlow6, 0, packet);
    EXPECT_TRUE(check_icrc(kFlow6, packet, 5)) << "IPv6 has none";
  }
}

/// Up to 64 bytes after the BTH, and beyond, they are taken in different ways.
TEST(Icrc, is_that_of_all_bytes_in_a_row_at_every_length) {
  for (const Flow& flow : {kFlow4, kFlow6}) {
    for (size_t words = 3; words <= 40; ++words) {
      const Bytes packet = counting_packet(words);
      const std::span<const std::byte> bytes = covered(packet);
      Bytes all(8, std::byte{0xff});
      const auto put = [&all](std::initializer_list<unsigned> values) {
        for (const unsigned value : values) {
          all.push_back(static_cast<std::byte>(value));
        }
      };
      const auto udp = static_cast<unsigned>(8 + packet.size());
      const auto put_address = [&](const Address& address, size_t first) {
        std::for_each(address.begin() + static_cast<ptrdiff_t>(first), address.end(),
                      [&](uint8_t byte) { put({byte}); });
      };
      const bool is_v4 = is_ipv4(flow);
      if (is_v4) {
        put({0x45, 0xff, (20 + udp) >> 8, (20 + udp) & 0xff, 0x12, 0x34, 0x40, 0, 0xff, 17, 0xff, 0xff});
      } else {
        put({0x6f, 0xff, 0xff, 0xff, udp >> 8, udp & 0xff, 17, 0xff});
      }
      put_address(flow.source, is_v4 ? 12 : 0);
      put_address(flow.destination, is_v4 ? 12 : 0);
      put({0xd8, 0x72, kRocePort >> 8, kRocePort & 0xff, udp >> 8, udp & 0xff, 0xff, 0xff});
      all.insert(all.end(), bytes.begin(), bytes.end());
      all[all.size() - bytes.size() + 4] = std::byte{0xff};
      ASSERT_EQ(icrc(flow, 0x1234, bytes), base::crc32(0, all)) << words << " words";
    }
  }
}

TEST(Icrc, of_ipv6_takes_every_bit_but_those_of_congestion) {
  Bytes packet = counting_packet(9);
  put_icrc(kFlow6, 0, packet);
  ASSERT_TRUE(check_icrc(kFlow6, packet));
  for (size_t bit = 0; bit < packet.size() * 8; ++bit) {
    packet[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_EQ(check_icrc(kFlow6, packet), bit / 8 == 4) << "bit " << bit;
    packet[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Icrc, of_ipv4_misses_no_single_bit_except_where_an_identification_explains_it) {
  Bytes packet = counting_packet(9);
  put_icrc(kFlow4, 0, packet);
  for (size_t bit = 0; bit < packet.size() * 8; ++bit) {
    packet[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto id = find_ipv4_id(kFlow4, packet);
    if (bit / 8 == 4) {
      EXPECT_EQ(id, 0);
    } else {
      EXPECT_FALSE(id.has_value()) << "bit " << bit;
    }
    packet[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(Icrc, covers_addresses_and_ports) {
  for (const Flow& flow : {kFlow4, kFlow6}) {
    Bytes packet = counting_packet(6);
    put_icrc(flow, 0, packet);
    EXPECT_TRUE(check_icrc(flow, packet));
    for (size_t byte : {13U, 15U}) {
      Flow other = flow;
      other.source[byte] ^= 1;
      EXPECT_FALSE(check_icrc(other, packet));
      other = flow;
      other.destination[byte] ^= 1;
      EXPECT_FALSE(check_icrc(other, packet));
    }
    Flow other = flow;
    ++other.source_port;
    EXPECT_FALSE(check_icrc(other, packet));
    other = flow;
    ++other.destination_port;
    EXPECT_FALSE(check_icrc(other, packet));
  }
}

TEST(Icrc, accepts_one_of_65536_random_values_over_ipv4) {
  Bytes packet = counting_packet(6);
  put_icrc(kFlow4, 0, packet);
  const std::span<std::byte> tail = std::span(packet).last(kIcrcBytes);
  uint32_t accepted = 0;
  uint32_t value = 1;
  for (int i = 0; i < 1 << 20; ++i) {
    value = value * 1664525U + 1013904223U;
    put_be(tail, 0, value);
    accepted += check_icrc(kFlow4, packet) ? 1U : 0U;
  }
  EXPECT_GT(accepted, 0U);
  EXPECT_LT(accepted, 64U);  // 16 expected
}

TEST(Icrc, refuses_what_is_no_packet) {
  for (const Flow& flow : {kFlow4, kFlow6, Flow{}}) {
    for (const size_t size : {0U, 1U, 4U, 11U, 12U, 15U, 17U, 19U, 65536U, 70000U}) {
      EXPECT_FALSE(check_icrc(flow, Bytes(size))) << size;
      EXPECT_FALSE(find_ipv4_id(flow, Bytes(size)).has_value()) << size;
    }
  }
  Bytes packet = counting_packet(6);
  put_icrc(kFlow6, 0, packet);
  EXPECT_FALSE(find_ipv4_id(kFlow6, packet).has_value()) << "IPv6 has none";
}

RC_GTEST_PROP(IcrcProperty, whatever_is_sent_is_accepted,
              (const std::vector<uint8_t>& payload, uint16_t id, bool is_v4)) {
  Bytes packet(kBthBytes + payload.size() + pad_bytes(payload.size()) + kIcrcBytes);
  std::transform(payload.begin(), payload.end(), packet.begin() + kBthBytes, [](uint8_t b) { return std::byte{b}; });
  const Flow& flow = is_v4 ? kFlow4 : kFlow6;
  put_icrc(flow, id, packet);
  RC_ASSERT(check_icrc(flow, packet));
  RC_ASSERT(find_ipv4_id(flow, packet) == (is_v4 ? std::optional<uint16_t>(id) : std::nullopt));
}

}  // namespace
}  // namespace ringbolt::wire
