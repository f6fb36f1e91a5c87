#include "wire/opcode.h"

#include <gtest/gtest.h>

#include <map>

#include "wire/headers.h"
#include "wire/syndrome.h"

namespace ringbolt::wire {
namespace {

TEST(Opcode, says_how_long_the_headers_are) {
  // From the tables of IBTA volume 1, chapter 9: BTH 12, RETH 16, AtomicETH 28, AETH 4, AtomicAckETH 8, DETH 8,
  // ImmDt 4.
  const std::map<uint8_t, size_t> expected{
      {0x00, 12}, {0x01, 12}, {0x02, 12}, {0x03, 16}, {0x04, 12}, {0x05, 16}, {0x06, 28}, {0x07, 12},
      {0x08, 12}, {0x09, 16}, {0x0a, 28}, {0x0b, 32}, {0x0c, 28}, {0x0d, 16}, {0x0e, 12}, {0x0f, 16},
      {0x10, 16}, {0x11, 16}, {0x12, 24}, {0x13, 40}, {0x14, 40}, {0x16, 16}, {0x17, 16}, {0x20, 12},
      {0x21, 12}, {0x22, 12}, {0x23, 16}, {0x24, 12}, {0x25, 16}, {0x26, 28}, {0x27, 12}, {0x28, 12},
      {0x29, 16}, {0x2a, 28}, {0x2b, 32}, {0x64, 20}, {0x65, 24}, {0x81, 12}, {0xc1, 12}, {0xc2, 16}};
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    const auto found = expected.find(static_cast<uint8_t>(opcode));
    const size_t length = found == expected.end() ? 0 : found->second;
    EXPECT_EQ(header_bytes(static_cast<uint8_t>(opcode)), length) << opcode;
    EXPECT_EQ(is_known(static_cast<uint8_t>(opcode)), length != 0) << opcode;
    EXPECT_LE(length, kMaxHeaderBytes);
  }
}

TEST(Opcode, belongs_to_one_transport_and_one_place_in_its_message) {
  for (unsigned value = 0; value < 256; ++value) {
    const auto opcode = static_cast<uint8_t>(value);
    if (!is_known(opcode)) {
      EXPECT_EQ(opcode_traits(opcode), 0U);
      continue;
    }
    EXPECT_EQ(is_rc(opcode) + is_uc(opcode) + is_ud(opcode), opcode < 0x80 ? 1 : 0) << value;
    EXPECT_EQ(is_first(opcode) + is_middle(opcode) + is_last(opcode) + is_only(opcode), opcode < 0x80 ? 1 : 0) << value;
    EXPECT_FALSE(is_request(opcode) && is_response(opcode)) << value;
    EXPECT_FALSE(has_immediate(opcode) && has_invalidate(opcode)) << value;
    EXPECT_LE(is_send(opcode) + is_write(opcode) + is_read_response(opcode) + is_atomic_request(opcode), 1) << value;
  }
}

TEST(Opcode, marks_the_ends_of_messages) {
  EXPECT_TRUE(begins_message(kRcSendFirst) && begins_message(kRcSendOnly) && begins_message(kUcWriteOnlyImmediate));
  EXPECT_FALSE(begins_message(kRcSendMiddle) || begins_message(kRcSendLast));
  EXPECT_TRUE(ends_message(kRcWriteLastImmediate) && ends_message(kRcSendOnlyInvalidate) && ends_message(kUdSendOnly));
  EXPECT_FALSE(ends_message(kRcReadResponseFirst) || ends_message(kRcReadResponseMiddle));
}

TEST(Opcode, knows_what_uses_up_a_receive) {
  EXPECT_TRUE(takes_receive(kRcSendFirst) && takes_receive(kUcSendLast) && takes_receive(kUdSendOnly));
  EXPECT_TRUE(takes_receive(kRcSendOnlyInvalidate) && takes_receive(kUcWriteOnlyImmediate));
  EXPECT_FALSE(takes_receive(kRcWriteOnly) || takes_receive(kUcWriteLast) || takes_receive(kRcReadRequest));
  EXPECT_FALSE(takes_receive(kRcFetchAdd) || takes_receive(kRcReadResponseOnly) || takes_receive(kRcAcknowledge));
}

TEST(Syndrome, is_of_one_kind) {
  EXPECT_TRUE(is_ack(kAckUnlimited) && !is_nak(kAckUnlimited) && !is_rnr_nak(kAckUnlimited));
  EXPECT_TRUE(is_rnr_nak(0x20) && is_rnr_nak(0x3f) && !is_rnr_nak(0x40));
  EXPECT_TRUE(is_nak(kNakSequence) && is_nak(kNakRemoteOperation) && !is_nak(0x80));
}

TEST(Syndrome, timer_codes_grow_except_for_the_longest_at_zero) {
  EXPECT_EQ(rnr_timer_us(0), 655360U);
  EXPECT_EQ(rnr_timer_us(1), 10U);
  EXPECT_EQ(rnr_timer_us(12), 640U);
  EXPECT_EQ(rnr_timer_us(31), 491520U);
  EXPECT_EQ(rnr_timer_us(32), rnr_timer_us(0)) << "the code has five bits";
  for (uint8_t code = 2; code < 32; ++code) {
    EXPECT_GT(rnr_timer_us(code), rnr_timer_us(static_cast<uint8_t>(code - 1)));
  }
}

}  // namespace
}  // namespace ringbolt::wire
