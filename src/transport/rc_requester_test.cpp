#include "transport/requester_test_support.h"

namespace ringbolt::transport::test {
namespace {

TEST_F(RcRequesterTest, cuts_a_message_into_packets) {
  Operation write = operation(Operation::write, 2 * kMtu + 5);
  write.has_immediate = true;
  write.immediate = 7;
  write.is_solicited = true;
  requester.submit(write);
  constexpr uint8_t opcodes[] = {wire::kRcWriteFirst, wire::kRcWriteMiddle, wire::kRcWriteLastImmediate};
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(requester.next_packet(now_ns, out));
    EXPECT_EQ(out.headers.bth.opcode, opcodes[i]);
    EXPECT_EQ(out.headers.bth.psn, psn(i));
    EXPECT_EQ(out.headers.bth.wants_ack, i == 2);
    EXPECT_EQ(out.headers.bth.is_solicited, i == 2);
    EXPECT_EQ(out.payload, OutPacket::Payload::operation);
    EXPECT_EQ(out.offset, i * kMtu);
    EXPECT_EQ(out.length, i == 2 ? 5 : kMtu);
    EXPECT_EQ(out.headers.bth.pad_count, i == 2 ? 3 : 0);
    EXPECT_EQ(out.headers.reth.length, 2 * kMtu + 5);
  }
  EXPECT_EQ(out.headers.immediate, 7U);
  EXPECT_FALSE(requester.next_packet(now_ns, out));
}

TEST_F(RcRequesterTest, sends_an_empty_message_as_one_packet) {
  submit(Operation::send, 0);
  EXPECT_EQ(fetch(), Indices{0});
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcSendOnly);
  EXPECT_EQ(out.payload, OutPacket::Payload::none);
  EXPECT_TRUE(out.headers.bth.wants_ack);
}

TEST_F(RcRequesterTest, completes_what_an_acknowledgement_covers) {
  submit_sends(3);
  EXPECT_EQ(fetch().size(), 3U);
  feed(acknowledge(psn(1)));
  EXPECT_EQ(requester.completed(), 2U);
  feed(acknowledge(psn(0)));  // past: nothing new
  EXPECT_EQ(requester.completed(), 2U);
  feed(acknowledge(psn(3)));  // future: never sent
  feed(acknowledge(psn(3), wire::kNakRemoteAccess));
  feed(acknowledge(psn(100), wire::kNakSequence));
  EXPECT_EQ(requester.completed(), 2U);
  EXPECT_FALSE(requester.failure());
  EXPECT_EQ(requester.counters().ignored, 4U);
  feed(acknowledge(psn(2)));
  EXPECT_TRUE(requester.is_idle());
  EXPECT_EQ(requester.next_deadline_ns(), UINT64_MAX);
}

TEST_F(RcRequesterTest, takes_as_many_operations_as_its_queue_is_deep) {
  submit_sends(64);
  EXPECT_FALSE(requester.can_submit());
  fetch();
  feed(acknowledge(psn(0)));
  EXPECT_TRUE(requester.can_submit());
}

TEST_F(RcRequesterTest, keeps_to_its_window_and_asks_within_it) {
  submit(Operation::send, 1000 * kMtu);
  uint32_t sent = 0;
  uint32_t unasked = 0;
  while (requester.next_packet(now_ns, out)) {
    ++sent;
    unasked = out.headers.bth.wants_ack ? 0 : unasked + 1;
    EXPECT_LE(unasked, requester.congestion().window() / 2);
  }
  EXPECT_EQ(sent, requester.congestion().window());
  EXPECT_EQ(requester.in_flight(), sent);
  EXPECT_EQ(unasked, 0U);
}

TEST_F(RcRequesterTest, goes_back_on_a_sequence_nak) {
  submit_sends(5);
  fetch();
  feed(acknowledge(psn(2), wire::kNakSequence));
  EXPECT_EQ(requester.completed(), 2U);
  EXPECT_EQ(fetch(), (Indices{2, 3, 4}));
  EXPECT_EQ(requester.counters().resent, 3U);
  feed(acknowledge(psn(1), wire::kNakSequence));  // past
  EXPECT_TRUE(fetch().empty());
}

TEST_F(RcRequesterTest, times_out_as_programmed_and_counts_real_retries) {
  submit_sends(2);
  fetch();
  const uint64_t began_ns = now_ns;
  for (uint32_t retry = 0; retry < 2; ++retry) {
    EXPECT_EQ(requester.next_deadline_ns(), began_ns + (retry + 1) * kTimeoutNs);
    pass(kTimeoutNs - 1);
    EXPECT_TRUE(fetch().empty());
    pass(1);
    EXPECT_EQ(fetch(), (Indices{0, 1}));
  }
  pass(kTimeoutNs);
  EXPECT_EQ(requester.failure(), (Failure{0, RequesterFailure::retry_exceeded}));
  EXPECT_TRUE(fetch().empty());
  feed(acknowledge(psn(1)));
  EXPECT_EQ(requester.completed(), 0U);
  EXPECT_EQ(requester.next_deadline_ns(), UINT64_MAX);
}

TEST_F(RcRequesterTest, counts_retries_anew_after_progress) {
  submit_sends(2);
  fetch();
  pass(kTimeoutNs);
  pass(kTimeoutNs);
  fetch();
  feed(acknowledge(psn(0)));
  pass(kTimeoutNs);
  pass(kTimeoutNs);
  EXPECT_FALSE(requester.failure());
  pass(kTimeoutNs);
  EXPECT_EQ(requester.failure(), (Failure{1, RequesterFailure::retry_exceeded}));
}

TEST_F(RcRequesterTest, does_not_count_time_in_which_the_path_carried_nothing) {
  submit_sends(1);
  fetch();
  for (int i = 0; i < 10; ++i) {
    now_ns += kTimeoutNs;
    requester.excuse(now_ns);
    requester.on_timer(now_ns);
    EXPECT_TRUE(fetch().empty());
  }
  // Then the programmed retries, from the end of the interruption on.
  requester.excuse(now_ns - 1);
  EXPECT_EQ(requester.next_deadline_ns(), now_ns + kTimeoutNs);
  pass(kTimeoutNs);
  pass(kTimeoutNs);
  EXPECT_FALSE(requester.failure());
  pass(kTimeoutNs);
  EXPECT_EQ(requester.failure(), (Failure{0, RequesterFailure::retry_exceeded}));
}

TEST_F(RcRequesterTest, waits_for_ever_without_a_timer_and_longer_with_a_least_one) {
  RequesterAttributes patient = requester_attributes();
  patient.timeout_code = 0;
  requester = RcRequester(patient);
  submit_sends(1);
  fetch();
  EXPECT_EQ(requester.next_deadline_ns(), UINT64_MAX);
  patient.timeout_code = 1;
  patient.least_timeout_ns = 5'000'000;
  requester = RcRequester(patient);
  submit_sends(1);
  fetch();
  EXPECT_EQ(requester.next_deadline_ns(), now_ns + 5'000'000);
}

TEST_F(RcRequesterTest, pauses_for_a_receiver_that_is_not_ready) {
  submit_sends(3);
  fetch();
  feed(acknowledge(psn(1), wire::kSyndromeRnr | 12));  // 0.64 ms
  EXPECT_EQ(requester.completed(), 1U);
  EXPECT_TRUE(fetch().empty());
  EXPECT_EQ(requester.next_deadline_ns(), now_ns + 640'000);
  feed(acknowledge(psn(1), wire::kSyndromeRnr | 12));  // a second copy does not count
  pass(640'000);
  EXPECT_EQ(fetch(), (Indices{1, 2}));
  feed(acknowledge(psn(1), wire::kSyndromeRnr | 1));
  EXPECT_EQ(requester.failure(), (Failure{1, RequesterFailure::rnr_retry_exceeded}));
}

TEST_F(RcRequesterTest, waits_for_receives_for_ever_when_told_so) {
  RequesterAttributes patient = requester_attributes();
  patient.rnr_retry = 7;
  requester = RcRequester(patient);
  submit_sends(1);
  for (uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(fetch(), Indices{0});
    feed(acknowledge(psn(0), wire::kSyndromeRnr | 1));
    pass(10'000);
  }
  EXPECT_FALSE(requester.failure());
}

TEST_F(RcRequesterTest, fails_with_what_the_peer_says) {
  const std::vector<std::pair<uint8_t, RequesterFailure>> refusals{
      {wire::kNakInvalidRequest, RequesterFailure::remote_invalid_request},
      {wire::kNakRemoteAccess, RequesterFailure::remote_access},
      {wire::kNakRemoteOperation, RequesterFailure::remote_operation}};
  for (const auto& [syndrome, why] : refusals) {
    requester = RcRequester(requester_attributes());
    submit_sends(3);
    fetch();
    feed(acknowledge(psn(1), syndrome));
    EXPECT_EQ(requester.completed(), 1U);
    EXPECT_EQ(requester.failure(), (Failure{1, why}));
  }
}

}  // namespace
}  // namespace ringbolt::transport::test
