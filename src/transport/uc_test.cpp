#include <gtest/gtest.h>

#include "transport/engine_test_support.h"
#include "transport/uc_requester.h"
#include "transport/uc_responder.h"

namespace ringbolt::transport {
namespace {

using test::Host;
using test::kMtu;
using test::request;

constexpr uint32_t kFirst = 0xfffffe;

TEST(UcRequester, completes_each_message_with_its_last_packet) {
  UcRequester requester({.dest_qp = 0x66, .first_psn = kFirst, .mtu_bytes = kMtu, .queue_depth = 2});
  Operation operation;
  operation.length = kMtu + 1;
  requester.submit(operation);
  operation.kind = Operation::write;
  operation.length = 0;
  operation.has_immediate = true;
  requester.submit(operation);
  EXPECT_FALSE(requester.can_submit());
  OutPacket out;
  constexpr uint8_t opcodes[] = {wire::kUcSendFirst, wire::kUcSendLast, wire::kUcWriteOnlyImmediate};
  constexpr uint32_t completed[] = {0, 1, 2};
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(requester.next_packet(0, out));
    EXPECT_EQ(out.headers.bth.opcode, opcodes[i]);
    EXPECT_EQ(out.headers.bth.psn, psn_add(kFirst, i));
    EXPECT_EQ(requester.completed(), completed[i]);
  }
  EXPECT_FALSE(requester.next_packet(0, out));
  EXPECT_TRUE(requester.is_idle());
}

struct UcResponderTest : testing::Test {
  UcResponder responder{{.first_psn = kFirst, .mtu_bytes = kMtu}};
  Host host;

  void feed(uint8_t opcode, uint32_t index, size_t length, uint32_t total = 0) {
    test::Packet packet = request(opcode, psn_add(kFirst, index), length);
    packet.headers.reth.length = total == 0 ? static_cast<uint32_t>(length) : total;
    responder.on_packet(0, packet.view(), host);
  }
};

TEST_F(UcResponderTest, delivers_messages_in_order) {
  feed(wire::kUcSendFirst, 0, kMtu);
  feed(wire::kUcSendLast, 1, 3);
  feed(wire::kUcSendOnly, 2, 0);
  ASSERT_EQ(host.received.size(), 2U);
  EXPECT_EQ(host.received[0].length, kMtu + 3);
  EXPECT_EQ(host.received[1].length, 0U);
}

TEST_F(UcResponderTest, drops_a_message_with_a_gap_and_reuses_its_receive) {
  host.receives = 1;
  feed(wire::kUcSendFirst, 0, kMtu);
  feed(wire::kUcSendLast, 2, 3);  // 1 is missing
  EXPECT_TRUE(host.received.empty());
  feed(wire::kUcSendMiddle, 3, kMtu);
  feed(wire::kUcSendOnly, 9, 7);  // goes on here, with the one receive that there is
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].length, 7U);
  EXPECT_EQ(responder.counters().messages_dropped, 1U);
}

TEST_F(UcResponderTest, drops_late_and_doubled_packets) {
  feed(wire::kUcSendOnly, 0, 1);
  feed(wire::kUcSendOnly, 0, 1);
  feed(wire::kUcSendFirst, 2, kMtu);
  feed(wire::kUcSendOnly, 1, 1);
  feed(wire::kUcSendLast, 3, 1);
  ASSERT_EQ(host.received.size(), 2U);
  EXPECT_EQ(host.received[1].length, kMtu + 1);
  // Far behind is a sender that began anew.
  feed(wire::kUcSendOnly, 4 - 5000U, 2);
  EXPECT_EQ(host.received.size(), 3U);
}

TEST_F(UcResponderTest, drops_what_finds_no_receive_or_permission) {
  host.receives = 0;
  feed(wire::kUcSendFirst, 0, kMtu);
  feed(wire::kUcSendLast, 1, 1);
  host.receives = 1;
  host.allows = false;
  feed(wire::kUcWriteFirst, 2, kMtu, 2 * kMtu);
  feed(wire::kUcWriteLastImmediate, 3, kMtu);
  EXPECT_TRUE(host.received.empty());
  EXPECT_EQ(host.writes, 0U);
  EXPECT_FALSE(host.failure);
  host.allows = true;
  feed(wire::kUcWriteFirst, 4, kMtu, 2 * kMtu);
  feed(wire::kUcWriteLastImmediate, 5, kMtu);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].length, 2 * kMtu);
}

TEST_F(UcResponderTest, drops_packets_of_the_wrong_length_or_order) {
  feed(wire::kUcSendFirst, 0, kMtu - 1);
  feed(wire::kUcSendLast, 1, 1);
  feed(wire::kUcSendFirst, 2, kMtu);
  feed(wire::kUcSendOnly, 3, 5);  // the first message never ended
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].length, 5U);
}

TEST_F(UcResponderTest, fails_over_a_receive_that_is_too_short) {
  host.receive_bytes = 10;
  feed(wire::kUcSendOnly, 0, 11);
  EXPECT_EQ(host.failure, ResponderFailure::receive_too_short);
  feed(wire::kUcSendOnly, 1, 1);
  EXPECT_TRUE(host.received.empty());
}

}  // namespace
}  // namespace ringbolt::transport
