#include "transport/rc_requester.h"

#include <gtest/gtest.h>

#include "transport/engine_test_support.h"

namespace ringbolt::transport {
namespace {

using test::acknowledge;
using test::answer;
using test::Host;
using test::kMtu;
using test::selective;

constexpr uint32_t kFirst = 0xfffffe;  // the numbers wrap early in each test
constexpr uint64_t kTimeoutNs = uint64_t{4096} << 8;

RequesterConfig config() {
  RequesterConfig made;
  made.dest_qp = 0x66;
  made.first_psn = kFirst;
  made.mtu_bytes = kMtu;
  made.queue_depth = 64;
  made.timeout_code = 8;
  made.retry_count = 2;
  made.rnr_retry = 1;
  made.max_rd_atomic = 2;
  return made;
}

Operation operation(Operation::Kind kind, uint32_t length) {
  Operation made;
  made.kind = kind;
  made.length = length;
  made.remote_address = test::kAddress;
  made.key = test::kKey;
  return made;
}

struct RcRequesterTest : testing::Test {
  RcRequester requester{config()};
  Host host;
  OutPacket out;
  uint64_t now_ns = 1'000'000;

  static uint32_t psn(uint32_t index) { return psn_add(kFirst, index); }
  void submit(Operation::Kind kind, uint32_t length) { requester.submit(operation(kind, length)); }
  void submit_sends(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      submit(Operation::send, 10);
    }
  }
  void feed(const test::Packet& packet) { requester.on_packet(now_ns, packet.view(), host); }
  /// Fetches what may go out now; the indices of the packets.
  std::vector<uint32_t> fetch() {
    std::vector<uint32_t> indices;
    while (requester.next_packet(now_ns, out)) {
      EXPECT_EQ(out.headers.bth.dest_qp, 0x66U);
      indices.push_back((out.headers.bth.psn - kFirst) & wire::kPsnMask);
    }
    return indices;
  }
  void pass(uint64_t ns) {
    now_ns += ns;
    requester.on_timer(now_ns);
  }
};

using Indices = std::vector<uint32_t>;

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

TEST_F(RcRequesterTest, waits_for_ever_without_a_timer_and_longer_with_a_least_one) {
  RequesterConfig patient = config();
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
  RequesterConfig patient = config();
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
    requester = RcRequester(config());
    submit_sends(3);
    fetch();
    feed(acknowledge(psn(1), syndrome));
    EXPECT_EQ(requester.completed(), 1U);
    EXPECT_EQ(requester.failure(), (Failure{1, why}));
  }
}

TEST_F(RcRequesterTest, places_read_answers_and_completes_with_the_last) {
  submit(Operation::read, 2 * kMtu + 5);
  submit_sends(1);
  EXPECT_EQ(fetch(), (Indices{0, 3}));
  feed(answer(wire::kRcReadResponseFirst, psn(0), kMtu, 1));
  feed(answer(wire::kRcReadResponseMiddle, psn(1), kMtu, 2));
  EXPECT_EQ(requester.completed(), 0U);
  feed(answer(wire::kRcReadResponseLast, psn(2), 5, 3));
  EXPECT_EQ(requester.completed(), 1U);
  EXPECT_EQ(host.read[kMtu], test::bytes(1, 2)[0]);
  EXPECT_EQ(host.read[2 * kMtu + 4], test::bytes(5, 3)[4]);
  feed(answer(wire::kRcReadResponseLast, psn(2), 5, 9));  // past
  EXPECT_EQ(host.read[2 * kMtu + 4], test::bytes(5, 3)[4]);
}

TEST_F(RcRequesterTest, takes_an_answer_for_an_acknowledgement_of_what_precedes_it) {
  submit_sends(2);
  submit(Operation::read, 10);
  fetch();
  feed(answer(wire::kRcReadResponseOnly, psn(2), 10));
  EXPECT_EQ(requester.completed(), 3U);
}

TEST_F(RcRequesterTest, asks_again_from_the_first_missing_answer) {
  submit(Operation::read, 5 * kMtu);
  fetch();
  feed(answer(wire::kRcReadResponseFirst, psn(0), kMtu));
  feed(answer(wire::kRcReadResponseMiddle, psn(2), kMtu));  // 1 is missing
  ASSERT_EQ(fetch(), Indices{1});
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcReadRequest);
  EXPECT_EQ(out.headers.reth.address, test::kAddress + kMtu);
  EXPECT_EQ(out.headers.reth.length, 4 * kMtu);
  feed(answer(wire::kRcReadResponseMiddle, psn(3), kMtu));
  EXPECT_TRUE(fetch().empty());  // once
  feed(acknowledge(psn(4)));     // an ACK of the READ's last packet brings no data
  EXPECT_EQ(requester.completed(), 0U);
  for (uint32_t i = 1; i < 5; ++i) {
    feed(answer(wire::kRcReadResponseMiddle, psn(i), kMtu));
  }
  EXPECT_EQ(requester.completed(), 1U);
}

TEST_F(RcRequesterTest, limits_reads_and_atomics_under_way) {
  for (uint32_t i = 0; i < 2; ++i) {
    submit(Operation::fetch_add, 0);
  }
  submit(Operation::read, 10);
  submit_sends(1);
  EXPECT_EQ(fetch(), (Indices{0, 1}));
  feed(answer(wire::kRcAtomicAcknowledge, psn(0), 0));
  EXPECT_EQ(fetch(), (Indices{2, 3}));
}

TEST_F(RcRequesterTest, waits_at_a_fence_for_answers) {
  submit(Operation::read, 2 * kMtu);
  submit_sends(1);
  Operation fenced = operation(Operation::send, 10);
  fenced.is_fenced = true;
  requester.submit(fenced);
  EXPECT_EQ(fetch(), (Indices{0, 2}));
  feed(answer(wire::kRcReadResponseFirst, psn(0), kMtu));
  EXPECT_TRUE(fetch().empty());
  feed(answer(wire::kRcReadResponseLast, psn(1), kMtu));
  EXPECT_EQ(fetch(), Indices{3});
}

TEST_F(RcRequesterTest, hands_over_what_an_atomic_found) {
  submit(Operation::compare_swap, 0);
  fetch();
  EXPECT_EQ(out.headers.bth.opcode, wire::kRcCompareSwap);
  feed(answer(wire::kRcReadResponseOnly, psn(0), 0));  // no answer to an atomic
  test::Packet found = answer(wire::kRcAtomicAcknowledge, psn(0), 0);
  found.headers.atomic_ack = 77;
  feed(found);
  EXPECT_EQ(host.found, std::vector<uint64_t>{77});
  EXPECT_EQ(requester.completed(), 1U);
}

TEST_F(RcRequesterTest, fails_over_answers_that_do_not_fit_or_cannot_be_placed) {
  submit(Operation::read, 10);
  fetch();
  feed(answer(wire::kRcReadResponseOnly, psn(0), 11));
  EXPECT_EQ(requester.failure(), (Failure{0, RequesterFailure::bad_response}));
  requester = RcRequester(config());
  submit(Operation::read, 10);
  fetch();
  host.places = false;
  feed(answer(wire::kRcReadResponseOnly, psn(0), 10));
  EXPECT_EQ(requester.failure(), (Failure{0, RequesterFailure::local_protection}));
}

TEST_F(RcRequesterTest, resends_to_a_selective_peer_only_what_is_missing) {
  requester.enable_selective();
  submit_sends(10);
  fetch();
  now_ns += 50'000;
  feed(selective(psn(2), {psn(3), psn(4), psn(6), psn(7)}));
  EXPECT_EQ(requester.completed(), 2U);
  // 2 is overtaken by more than three; 5 might still come.
  EXPECT_EQ(fetch(), Indices{2});
  feed(selective(psn(2), {psn(3), psn(4), psn(6), psn(7), psn(8), psn(9)}));
  EXPECT_EQ(fetch(), Indices{5});
  now_ns += 50'000;
  feed(acknowledge(psn(9)));
  EXPECT_TRUE(requester.is_idle());
  EXPECT_EQ(requester.counters().resent, 2U);
}

TEST_F(RcRequesterTest, repeats_an_unheard_read_request_whole_and_a_heard_one_in_part) {
  requester.enable_selective();
  submit(Operation::read, 8 * kMtu);
  submit_sends(5);
  fetch();
  now_ns += 50'000;
  feed(selective(psn(0), {psn(8), psn(9), psn(10), psn(11), psn(12)}));
  ASSERT_EQ(fetch(), Indices{0});
  EXPECT_EQ(out.headers.reth.length, 8 * kMtu);
  now_ns += 50'000;
  for (const uint32_t index : {0U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    feed(answer(wire::kRcReadResponseMiddle, psn(index), kMtu));
  }
  ASSERT_EQ(fetch(), Indices{1});
  EXPECT_EQ(out.headers.reth.length, kMtu);
}

TEST_F(RcRequesterTest, probes_a_silent_selective_peer_before_the_timer) {
  requester.enable_selective();
  submit_sends(4);
  fetch();
  const uint64_t deadline_ns = requester.next_deadline_ns();
  EXPECT_LE(deadline_ns, now_ns + kTimeoutNs);
  now_ns += 50'000;
  feed(acknowledge(psn(0)));
  ASSERT_LT(requester.next_deadline_ns(), now_ns + kTimeoutNs);
  pass(requester.next_deadline_ns() - now_ns);
  EXPECT_EQ(fetch(), (Indices{1, 3}));
  EXPECT_EQ(requester.counters().timeouts, 0U);
  EXPECT_EQ(requester.counters().probes, 1U);
}

TEST_F(RcRequesterTest, survives_a_peer_that_threw_away_what_it_held) {
  requester.enable_selective();
  submit_sends(6);
  fetch();
  feed(selective(psn(0), {psn(1), psn(2), psn(3), psn(4), psn(5)}));
  EXPECT_EQ(fetch(), Indices{0});
  pass(kTimeoutNs);
  pass(kTimeoutNs);
  EXPECT_EQ(fetch(), (Indices{0, 1, 2, 3, 4, 5}));
}

TEST_F(RcRequesterTest, ignores_hearsay_that_makes_no_sense) {
  submit_sends(2);
  fetch();
  feed(selective(psn(100), {psn(101)}));
  feed(selective(psn(0xfff000), {}));
  test::Packet cut = selective(psn(0), {psn(1)});
  cut.payload.pop_back();
  feed(cut);
  feed(selective(psn(0), {psn(200)}));  // never sent
  EXPECT_EQ(requester.completed(), 0U);
  feed(acknowledge(psn(1)));
  EXPECT_TRUE(requester.is_idle());
}

TEST_F(RcRequesterTest, opens_a_window_that_shrank_below_what_is_under_way) {
  submit(Operation::send, 500 * kMtu);
  const uint32_t sent = static_cast<uint32_t>(fetch().size());
  for (uint32_t i = 0; i < 2; ++i) {
    now_ns += 100'000'000;
    requester.on_timer(now_ns);  // the window shrinks
  }
  EXPECT_FALSE(requester.failure());
  uint32_t acknowledged = 0;
  for (uint32_t round = 0; round < 100 && !requester.is_idle(); ++round) {
    now_ns += 10'000;
    uint32_t asked = acknowledged;
    while (requester.next_packet(now_ns, out)) {
      if (out.headers.bth.wants_ack) {
        asked = ((out.headers.bth.psn - kFirst) & wire::kPsnMask) + 1;
      }
    }
    ASSERT_GT(asked, acknowledged) << "stuck after " << acknowledged << " of " << sent;
    acknowledged = asked;
    feed(acknowledge(psn(acknowledged - 1)));
  }
  EXPECT_TRUE(requester.is_idle());
}

}  // namespace
}  // namespace ringbolt::transport
