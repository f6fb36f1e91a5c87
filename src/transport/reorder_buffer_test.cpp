#include "transport/reorder_buffer.h"

#include <gtest/gtest.h>

#include "transport/engine_test_support.h"

namespace ringbolt::transport {
namespace {

using test::kMtu;
using test::request;

TEST(ReorderBuffer, gives_back_what_it_was_given) {
  ReorderBuffer buffer(kMtu);
  const test::Packet packet = request(wire::kRcSendMiddle, 12, kMtu, 3);
  EXPECT_TRUE(buffer.hold(12, packet.view()));
  EXPECT_TRUE(buffer.has(12));
  EXPECT_FALSE(buffer.has(11) || buffer.has(13));
  EXPECT_EQ(buffer.at(12).headers, packet.headers);
  EXPECT_TRUE(std::ranges::equal(buffer.at(12).payload, packet.payload));
  buffer.release(12, 13);
  EXPECT_TRUE(buffer.is_empty());
}

TEST(ReorderBuffer, keeps_what_was_repeated_last_and_nothing_longer_than_a_packet) {
  ReorderBuffer buffer(kMtu);
  EXPECT_FALSE(buffer.hold(1, request(wire::kRcSendOnly, 1, kMtu + 1).view()));
  EXPECT_TRUE(buffer.hold(1, request(wire::kRcSendOnly, 1, 5, 1).view()));
  EXPECT_FALSE(buffer.hold(1, request(wire::kRcWriteOnly, 1, 9, 2).view()));
  EXPECT_FALSE(buffer.hold(1, request(wire::kRcSendOnly, 1, kMtu + 1).view()));
  EXPECT_EQ(buffer.at(1).headers.bth.opcode, wire::kRcWriteOnly);
  EXPECT_TRUE(std::ranges::equal(buffer.at(1).payload, test::bytes(9, 2)));
  buffer.release(1, 2);
  EXPECT_TRUE(buffer.is_empty());
}

TEST(ReorderBuffer, holds_a_full_window_again_and_again) {
  ReorderBuffer buffer(kMtu);
  for (uint64_t base = 0; base < 3 * uint64_t{kWindowPackets}; base += kWindowPackets) {
    for (uint64_t at = base + 1; at < base + kWindowPackets; ++at) {
      ASSERT_TRUE(buffer.hold(at, request(wire::kRcSendOnly, static_cast<uint32_t>(at), at % kMtu).view()));
    }
    EXPECT_EQ(buffer.at(base + 200).payload.size(), (base + 200) % kMtu);
    buffer.release(base, base + kWindowPackets);
    EXPECT_TRUE(buffer.is_empty());
  }
}

TEST(ReorderBuffer, describes_what_came_after_the_missing_one) {
  ReorderBuffer buffer(kMtu);
  buffer.hold(102, request(wire::kRcSendOnly, 102).view());
  buffer.hold(104, request(wire::kRcSendOnly, 104).view());
  wire::SelectiveAck expected;
  expected.set(1);
  expected.set(3);
  EXPECT_EQ(buffer.describe(100, 100), expected);
  // Told later, when 100 to 102 are executed: they count as come.
  buffer.release(100, 103);
  expected.set(0);
  EXPECT_EQ(buffer.describe(100, 103), expected);
}

}  // namespace
}  // namespace ringbolt::transport
