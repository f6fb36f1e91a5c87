// A requester whose peer tells what it holds.

#include "transport/requester_test_support.h"

namespace ringbolt::transport::test {
namespace {

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

TEST_F(RcRequesterTest, asks_again_for_reads_behind_one_that_is_executed_again) {
  RequesterAttributes attributes = requester_attributes();
  attributes.max_rd_atomic = 16;
  requester = RcRequester(attributes);
  requester.enable_selective();
  submit(Operation::read, kMtu);
  submit(Operation::fetch_add, 8);
  for (int i = 0; i < 5; ++i) {
    submit(Operation::read, kMtu);
  }
  fetch();
  now_ns += 50'000;
  feed(answer(wire::kRcAtomicAcknowledge, psn(1), 0));
  for (const uint32_t index : {2U, 3U, 4U, 5U}) {
    feed(answer(wire::kRcReadResponseOnly, psn(index), kMtu));
  }
  // The first one's answer is overtaken: what it reads now is newer than what the others have read.
  ASSERT_EQ(fetch(), (Indices{0, 2, 3, 4, 5, 6}));
  feed(answer(wire::kRcReadResponseOnly, psn(6), kMtu));  // still of the first time
  EXPECT_EQ(requester.completed(), 0U);
  now_ns += 50'000;
  for (const uint32_t index : {0U, 2U, 3U, 4U, 5U}) {
    feed(answer(wire::kRcReadResponseOnly, psn(index), kMtu));
  }
  EXPECT_EQ(requester.completed(), 6U);
  feed(answer(wire::kRcReadResponseOnly, psn(6), kMtu));
  EXPECT_TRUE(requester.is_idle());
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

TEST_F(RcRequesterTest, believes_no_hearsay_of_a_stranger) {
  submit_sends(10);
  fetch();
  feed(selective(psn(2), {psn(3), psn(4), psn(6), psn(7)}));
  EXPECT_FALSE(requester.is_selective());
  EXPECT_EQ(requester.completed(), 0U);
  EXPECT_EQ(fetch(), Indices{});
}

TEST_F(RcRequesterTest, ignores_hearsay_that_makes_no_sense) {
  requester.enable_selective();
  submit_sends(2);
  fetch();
  feed(selective(psn(100), {psn(101)}));
  feed(selective(psn(0xfff000), {}));
  Packet cut = selective(psn(0), {psn(1)});
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
}  // namespace ringbolt::transport::test
