// READs and atomics of a requester.

#include "transport/requester_test_support.h"

namespace ringbolt::transport::test {
namespace {

TEST_F(RcRequesterTest, places_read_answers_and_completes_with_the_last) {
  submit(Operation::read, 2 * kMtu + 5);
  submit_sends(1);
  EXPECT_EQ(fetch(), (Indices{0, 3}));
  feed(answer(wire::kRcReadResponseFirst, psn(0), kMtu, 1));
  feed(answer(wire::kRcReadResponseMiddle, psn(1), kMtu, 2));
  EXPECT_EQ(requester.completed(), 0U);
  feed(answer(wire::kRcReadResponseLast, psn(2), 5, 3));
  EXPECT_EQ(requester.completed(), 1U);
  EXPECT_EQ(host.read[kMtu], bytes(1, 2)[0]);
  EXPECT_EQ(host.read[2 * kMtu + 4], bytes(5, 3)[4]);
  feed(answer(wire::kRcReadResponseLast, psn(2), 5, 9));  // past
  EXPECT_EQ(host.read[2 * kMtu + 4], bytes(5, 3)[4]);
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
  EXPECT_EQ(out.headers.reth.address, kAddress + kMtu);
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
  Packet found = answer(wire::kRcAtomicAcknowledge, psn(0), 0);
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
  requester = RcRequester(requester_attributes());
  submit(Operation::read, 10);
  fetch();
  host.places = false;
  feed(answer(wire::kRcReadResponseOnly, psn(0), 10));
  EXPECT_EQ(requester.failure(), (Failure{0, RequesterFailure::local_protection}));
}

}  // namespace
}  // namespace ringbolt::transport::test
