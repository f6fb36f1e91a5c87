#pragma once

#include <gtest/gtest.h>

#include "transport/engine_test_support.h"
#include "transport/rc_responder.h"

/// An RC responder with a host, for its unit tests.
namespace ringbolt::transport::test {

inline constexpr uint32_t kFirst = 0xfffffe;  // the numbers wrap early in each test

inline ResponderAttributes responder_attributes() {
  return {.dest_qp = 0x55, .first_psn = kFirst, .mtu_bytes = kMtu, .max_dest_rd_atomic = 2, .min_rnr_timer = 12};
}

struct RcResponderTest : ::testing::Test {
  RcResponder responder{responder_attributes()};
  Host host;
  OutPacket out;

  uint32_t psn(uint32_t index) const { return psn_add(kFirst, index); }
  void feed(const Packet& packet) { responder.on_packet(0, packet.view(), host); }
  /// The next answer is an ACK or NAK with these; and the last of all if `is_last`.
  void expect_acknowledge(uint8_t syndrome, uint32_t index, uint32_t msn) {
    ASSERT_TRUE(responder.next_packet(0, out));
    EXPECT_EQ(out.headers.bth.opcode, wire::kRcAcknowledge);
    EXPECT_EQ(out.headers.bth.dest_qp, 0x55U);
    EXPECT_EQ(out.headers.aeth.syndrome, syndrome);
    EXPECT_EQ(out.headers.bth.psn, psn(index));
    EXPECT_EQ(out.headers.aeth.msn, msn);
  }
  void expect_silence() { EXPECT_FALSE(responder.next_packet(0, out)); }
};

}  // namespace ringbolt::transport::test
