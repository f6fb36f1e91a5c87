#include "packet_text.h"

#include <array>

#include <gtest/gtest.h>

namespace ringbolt::tools {
namespace {

/// IPv4 and UDP to port 4791 with 32 bytes that are no RoCE packet; bytes 6 and 7 are flags and fragment offset.
std::array<std::byte, 60> datagram_at(unsigned flags_and_offset) {
  std::array<std::byte, 60> bytes{};
  bytes[0] = std::byte{0x45};  // version 4, five words
  bytes[3] = std::byte{60};
  bytes[6] = static_cast<std::byte>(flags_and_offset >> 8U);
  bytes[7] = static_cast<std::byte>(flags_and_offset & 0xffU);
  bytes[9] = std::byte{17};  // UDP
  bytes[22] = std::byte{0x12};
  bytes[23] = std::byte{0xb7};  // 4791
  bytes[25] = std::byte{40};    // of UDP
  return bytes;
}

TEST(PacketText, of_later_fragments_is_none_since_they_have_no_udp_header) {
  constexpr unsigned kDontFragment = 0x4000;
  constexpr unsigned kMoreFragments = 0x2000;
  for (const unsigned first : {0U, kDontFragment, kMoreFragments}) {
    EXPECT_EQ(describe_datagram(datagram_at(first), true).size(), 1U) << first;
  }
  for (const unsigned later : {1U, 0x100U, 0x1fffU, kMoreFragments | 1U}) {
    EXPECT_TRUE(describe_datagram(datagram_at(later), true).empty()) << later;
  }
}

}  // namespace
}  // namespace ringbolt::tools
