#include "transport/responder_test_support.h"

namespace ringbolt::transport::test {
namespace {

TEST_F(RcResponderTest, executes_a_send_of_several_packets_and_acknowledges_once) {
  feed(request(wire::kRcSendFirst, psn(0), kMtu, 1));
  expect_silence();
  feed(request(wire::kRcSendMiddle, psn(1), kMtu, 2));
  EXPECT_TRUE(responder.has_open_message());
  Packet last = request(wire::kRcSendLastImmediate, psn(2), 9, 3);
  last.headers.immediate = 42;
  last.headers.bth.is_solicited = true;
  feed(last);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].length, 2 * kMtu + 9);
  EXPECT_TRUE(host.received[0].has_immediate && host.received[0].is_solicited);
  EXPECT_EQ(host.received[0].immediate, 42U);
  EXPECT_EQ(host.message.size(), 2 * kMtu + 9);
  expect_acknowledge(wire::kAckUnlimited, 2, 1);
  expect_silence();
}

TEST_F(RcResponderTest, merges_the_acknowledgements_of_a_batch) {
  for (uint32_t i = 0; i < 5; ++i) {
    feed(request(wire::kRcSendOnly, psn(i), 10));
  }
  expect_acknowledge(wire::kAckUnlimited, 4, 5);
  expect_silence();
}

TEST_F(RcResponderTest, acknowledges_past_packets_again_without_executing_them) {
  feed(request(wire::kRcSendOnly, psn(0), 10));
  feed(request(wire::kRcWriteOnly, psn(1), 10));
  expect_acknowledge(wire::kAckUnlimited, 1, 2);
  feed(request(wire::kRcSendOnly, psn(0), 10));
  feed(request(wire::kRcWriteOnly, psn(1), 10));
  EXPECT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.writes, 1U);
  expect_acknowledge(wire::kAckUnlimited, 1, 2);
  EXPECT_EQ(responder.counters().duplicates, 2U);
}

TEST_F(RcResponderTest, refuses_future_packets_once_until_repaired) {
  feed(request(wire::kRcSendOnly, psn(2), 10));
  expect_acknowledge(wire::kNakSequence, 0, 0);
  feed(request(wire::kRcSendOnly, psn(3), 10));
  feed(request(wire::kRcSendOnly, psn(1), 10));
  expect_silence();
  EXPECT_TRUE(host.received.empty());
  feed(request(wire::kRcSendOnly, psn(0), 10));
  expect_acknowledge(wire::kAckUnlimited, 0, 1);
  feed(request(wire::kRcSendOnly, psn(5), 10));
  expect_acknowledge(wire::kNakSequence, 1, 1);
}

TEST_F(RcResponderTest, says_receiver_not_ready_and_then_keeps_quiet) {
  host.receives = 0;
  feed(request(wire::kRcSendOnly, psn(0), 10));
  expect_acknowledge(wire::kSyndromeRnr | 12, 0, 0);
  feed(request(wire::kRcSendOnly, psn(1), 10));
  expect_silence();
  host.receives = 2;
  feed(request(wire::kRcSendOnly, psn(0), 10));
  expect_acknowledge(wire::kAckUnlimited, 0, 1);
  // A WRITE without immediate data needs no receive; with it, it does, and is not begun without.
  host.receives = 0;
  feed(request(wire::kRcWriteOnlyImmediate, psn(1), 10));
  expect_acknowledge(wire::kSyndromeRnr | 12, 1, 1);
  EXPECT_EQ(host.writes, 0U);
  responder.set_min_rnr_timer(5);
  feed(request(wire::kRcWriteOnlyImmediate, psn(1), 10));
  expect_acknowledge(wire::kSyndromeRnr | 5, 1, 1);
}

TEST_F(RcResponderTest, executes_writes_where_they_belong) {
  Packet first = request(wire::kRcWriteFirst, psn(0), kMtu, 1);
  first.headers.reth.length = kMtu + 3;
  feed(first);
  feed(request(wire::kRcWriteLastImmediate, psn(1), 3, 9));
  EXPECT_TRUE(std::equal(first.payload.begin(), first.payload.end(), host.region.begin()));
  EXPECT_EQ(host.region[kMtu], bytes(1, 9)[0]);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_EQ(host.received[0].kind, Received::write_immediate);
  EXPECT_EQ(host.received[0].length, kMtu + 3);
}

TEST_F(RcResponderTest, lets_empty_writes_and_reads_pass_with_any_key) {
  host.allows = false;
  feed(request(wire::kRcWriteOnly, psn(0), 0));
  feed(request(wire::kRcReadRequest, psn(1), 0));
  EXPECT_FALSE(host.failure);
  expect_acknowledge(wire::kAckUnlimited, 0, 1);
  ASSERT_TRUE(responder.next_packet(0, out));
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcReadResponseOnly);
  EXPECT_EQ(out.length, 0U);
}

TEST_F(RcResponderTest, answers_a_read_in_packets) {
  Packet read = request(wire::kRcReadRequest, psn(0));
  read.headers.reth.length = 2 * kMtu + 5;
  feed(read);
  feed(request(wire::kRcSendOnly, psn(3), 1));
  constexpr uint8_t opcodes[] = {wire::kRcReadResponseFirst, wire::kRcReadResponseMiddle, wire::kRcReadResponseLast};
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(responder.next_packet(0, out));
    EXPECT_EQ(out.headers.bth.opcode, opcodes[i]);
    EXPECT_EQ(out.headers.bth.psn, psn(i));
    EXPECT_EQ(out.payload, OutPacket::Payload::memory);
    EXPECT_EQ(out.address, kAddress + uint64_t{i} * kMtu);
    EXPECT_EQ(out.length, i == 2 ? 5 : kMtu);
    EXPECT_EQ(out.headers.bth.pad_count, i == 2 ? 3 : 0);
  }
  expect_acknowledge(wire::kAckUnlimited, 3, 2);
}

TEST_F(RcResponderTest, reads_again_for_a_duplicate_but_only_what_was_asked) {
  Packet read = request(wire::kRcReadRequest, psn(0));
  read.headers.reth.length = 3 * kMtu;
  feed(read);
  feed(read);  // its answer waits: not twice
  uint32_t packets = 0;
  while (responder.next_packet(0, out)) {
    ++packets;
  }
  EXPECT_EQ(packets, 3U);
  Packet rest = request(wire::kRcReadRequest, psn(1));
  rest.headers.reth = {kAddress + kMtu, kKey, 2 * kMtu};
  feed(rest);
  ASSERT_TRUE(responder.next_packet(0, out));
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcReadResponseFirst);
  EXPECT_EQ(out.headers.bth.psn, psn(1));
  ASSERT_TRUE(responder.next_packet(0, out));
  rest.headers.reth.length = 4 * kMtu;  // beyond the end of what was asked
  feed(rest);
  expect_silence();
}

TEST_F(RcResponderTest, never_executes_an_atomic_twice) {
  feed(request(wire::kRcFetchAdd, psn(0)));
  feed(request(wire::kRcFetchAdd, psn(1)));
  while (responder.next_packet(0, out)) {
  }
  feed(request(wire::kRcFetchAdd, psn(0)));
  EXPECT_EQ(host.counter, 2U);
  ASSERT_TRUE(responder.next_packet(0, out));
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcAtomicAcknowledge);
  EXPECT_EQ(out.headers.bth.psn, psn(0));
  EXPECT_EQ(out.headers.atomic_ack, 0U);
  // The cache is as deep as max_dest_rd_atomic; what is older is dropped.
  feed(request(wire::kRcFetchAdd, psn(2)));
  ASSERT_TRUE(responder.next_packet(0, out));
  feed(request(wire::kRcFetchAdd, psn(0)));
  expect_silence();
  EXPECT_EQ(host.counter, 3U);
}

TEST_F(RcResponderTest, makes_reads_wait_when_too_many_are_unanswered) {
  Packet read = request(wire::kRcReadRequest, psn(0));
  read.headers.reth.length = kMtu;
  for (uint32_t i = 0; i < 20; ++i) {
    read.headers.bth.psn = psn(i);
    feed(read);
  }
  EXPECT_FALSE(host.failure);
  EXPECT_EQ(responder.expected_psn(), psn(8));
  while (responder.next_packet(0, out)) {
  }
  read.headers.bth.psn = psn(8);
  feed(read);
  EXPECT_EQ(responder.expected_psn(), psn(9));
}

TEST_F(RcResponderTest, replaces_a_read_response_that_cannot_be_read) {
  Packet read = request(wire::kRcReadRequest, psn(0));
  read.headers.reth.length = 3 * kMtu;
  feed(read);
  ASSERT_TRUE(responder.next_packet(0, out));
  ASSERT_TRUE(responder.next_packet(0, out));
  responder.refuse_read();
  expect_acknowledge(wire::kNakRemoteAccess, 1, 1);
  expect_silence();
  EXPECT_TRUE(responder.has_failed());
}

TEST_F(RcResponderTest, tells_a_short_receive_from_an_unreadable_one) {
  host.receive_bytes = 5;
  feed(request(wire::kRcSendOnly, psn(0), 6));
  EXPECT_EQ(host.failure, ResponderFailure::receive_too_short);
  expect_acknowledge(wire::kNakInvalidRequest, 0, 0);
}

TEST_F(RcResponderTest, says_its_last_word_again_when_told_to) {
  EXPECT_FALSE(responder.repeat_refusal());
  host.receive_bytes = 5;
  feed(request(wire::kRcSendOnly, psn(0), 6));
  expect_acknowledge(wire::kNakInvalidRequest, 0, 0);
  expect_silence();
  EXPECT_TRUE(responder.repeat_refusal());
  expect_acknowledge(wire::kNakInvalidRequest, 0, 0);
  expect_silence();
}

TEST_F(RcResponderTest, invalidates_or_refuses) {
  Packet packet = request(wire::kRcSendOnlyInvalidate, psn(0), 6);
  packet.headers.invalidate_key = 99;
  feed(packet);
  ASSERT_EQ(host.received.size(), 1U);
  EXPECT_TRUE(host.received[0].invalidated);
  EXPECT_EQ(host.received[0].invalidated_key, 99U);
  host.allows_invalidation = false;
  packet.headers.bth.psn = psn(1);
  feed(packet);
  EXPECT_EQ(host.failure, ResponderFailure::remote_access);
}

TEST_F(RcResponderTest, ignores_what_is_no_request_of_its_kind) {
  feed(request(wire::kUcSendOnly, psn(0), 6));
  feed(answer(wire::kRcReadResponseOnly, psn(0), 6));
  feed(acknowledge(psn(0)));
  expect_silence();
  EXPECT_EQ(responder.expected_psn(), psn(0));
}

TEST_F(RcResponderTest, keeps_early_packets_for_a_selective_peer) {
  responder.enable_selective();
  feed(request(wire::kRcSendOnly, psn(1), 10, 2));
  feed(request(wire::kRcSendOnly, psn(3), 10, 4));
  feed(request(wire::kRcSendOnly, psn(3), 10, 5));  // a second copy
  ASSERT_TRUE(responder.next_packet(0, out));
  EXPECT_EQ(out.headers.bth.opcode, wire::kSelectiveAck);
  EXPECT_EQ(out.headers.bth.psn, psn(0));
  const auto ack = wire::parse_selective_ack(std::span(out.bytes).first(out.length));
  ASSERT_TRUE(ack);
  EXPECT_TRUE(ack->has(0) && !ack->has(1) && ack->has(2));
  expect_silence();
  EXPECT_TRUE(host.received.empty());
  feed(request(wire::kRcSendOnly, psn(0), 10, 1));
  EXPECT_EQ(host.received.size(), 2U);
  ASSERT_TRUE(responder.next_packet(0, out));
  EXPECT_EQ(out.headers.bth.opcode, wire::kSelectiveAck);
  EXPECT_EQ(out.headers.bth.psn, psn(2));
  feed(request(wire::kRcSendOnly, psn(2), 10, 3));
  EXPECT_EQ(host.received.size(), 4U);
  EXPECT_EQ(host.message, bytes(10, 5));
  expect_acknowledge(wire::kAckUnlimited, 3, 4);
}

TEST_F(RcResponderTest, executes_an_early_packet_as_its_sender_repeated_it_last) {
  responder.enable_selective();
  feed(request(wire::kRcSendOnly, psn(1), 10, 7));
  feed(request(wire::kRcSendOnly, psn(1), 12, 2));
  EXPECT_TRUE(host.received.empty());
  feed(request(wire::kRcSendOnly, psn(0), 10, 1));
  ASSERT_EQ(host.received.size(), 2U);
  EXPECT_EQ(host.received[1].length, 12U);
  EXPECT_EQ(host.message, bytes(12, 2));
}

TEST_F(RcResponderTest, keeps_nothing_beyond_a_window_and_nothing_after_not_ready) {
  responder.enable_selective();
  feed(request(wire::kRcSendOnly, psn(kWindowPackets), 10));
  EXPECT_EQ(responder.counters().held, 0U);
  feed(request(wire::kRcSendOnly, psn(kWindowPackets - 1), 10));
  EXPECT_EQ(responder.counters().held, 1U);
  host.receives = 0;
  feed(request(wire::kRcSendOnly, psn(0), 10));
  feed(request(wire::kRcSendOnly, psn(1), 10));
  while (responder.next_packet(0, out)) {
  }
  EXPECT_EQ(out.headers.aeth.syndrome, wire::kSyndromeRnr | 12);
  host.receives = 8;
  feed(request(wire::kRcSendOnly, psn(0), 10));
  expect_acknowledge(wire::kAckUnlimited, 0, 1);  // nothing is held any more
}

}  // namespace
}  // namespace ringbolt::transport::test
