// When sends through a lane are given up: InfiniBand Architecture Specification 1.4, 9.7.6.1.3 (transport timer) and
// 9.7.5.2.8 (RNR NAK). The time is the test's: nothing here waits.

#include <gtest/gtest.h>

#include "device/lane_test_support.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kTestMs = 1'000'000;

class LaneTimersTest : public LanePairTest {
 protected:
  /// The first look at a send that nobody answers; it starts its clock.
  void begin_to_wait(ibv_qp_type type = IBV_QPT_RC) {
    begin(type);
    post_first();
  }
  void post_first() {
    ASSERT_EQ(a_->send(1, from_.piece(0, 8)), 0);
    look();
  }
  void look() { a_->transport.check_timers(a_->sends, now_ns_); }
  /// Time passes, and somebody looks every 50 ms.
  void pass(uint64_t ns) {
    for (const uint64_t end = now_ns_ + ns; now_ns_ < end;) {
      now_ns_ = std::min(end, now_ns_ + 50 * kTestMs);
      look();
    }
  }
  bool has_failed() const { return a_->state() == IBV_QPS_ERR; }

  uint64_t now_ns_ = base::now_ns();
};

TEST_F(LaneTimersTest, peer_that_is_not_stopped_has_four_times_the_timeout) {
  begin_to_wait();
  pass(4 * kLeastTimeoutNs - 50 * kTestMs);
  EXPECT_FALSE(has_failed());
  pass(100 * kTestMs);
  ASSERT_TRUE(has_failed());
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_RETRY_EXC_ERR}}));
  EXPECT_EQ(counter(device_, "retry_exceeded_err"), 1U);
}

TEST_F(LaneTimersTest, peer_that_is_stopped_has_the_timeout) {
  peer_->stopped = true;
  begin_to_wait();
  pass(kLeastTimeoutNs - 50 * kTestMs);
  EXPECT_FALSE(has_failed());
  pass(100 * kTestMs);
  EXPECT_TRUE(has_failed());
}

TEST_F(LaneTimersTest, timeout_is_what_the_attributes_say_where_that_is_longer) {
  peer_->stopped = true;
  begin(IBV_QPT_RC);
  a_->core.attributes.timeout = 19;  // 4.096 us * 2^19 = 2.1 s, twice with one retry
  post_first();
  const uint64_t whole = 2 * (4096ULL << 19U);
  pass(whole - 100 * kTestMs);
  EXPECT_FALSE(has_failed());
  pass(200 * kTestMs);
  EXPECT_TRUE(has_failed());
}

TEST_F(LaneTimersTest, timeout_of_zero_waits_for_ever) {
  peer_->stopped = true;
  begin(IBV_QPT_RC);
  a_->core.attributes.timeout = 0;
  post_first();
  pass(600'000 * kTestMs);
  EXPECT_FALSE(has_failed());
}

TEST_F(LaneTimersTest, timeout_of_zero_gives_up_a_queue_pair_that_was_closed) {
  begin(IBV_QPT_RC);
  a_->core.attributes.timeout = 0;
  post_first();
  b_->fail();
  pass(2'000 * kTestMs);
  EXPECT_TRUE(has_failed());
}

TEST_F(LaneTimersTest, queue_pair_that_is_gone_is_given_up_after_the_timeout) {
  for (const auto state : {PeerState::withdrawn, PeerState::left}) {
    begin_to_wait();
    a_->connection.peer_state.store(state);
    a_->connection.progress_since_ns = 0;  // as the news of it has it
    look();
    pass(kLeastTimeoutNs - 50 * kTestMs);
    EXPECT_FALSE(has_failed());
    pass(100 * kTestMs);
    EXPECT_TRUE(has_failed());
  }
}

TEST_F(LaneTimersTest, answer_begins_the_time_anew) {
  peer_->stopped = true;
  begin(IBV_QPT_RC);
  ASSERT_EQ(b_->receive(9, {to_.piece(0, 8)}), 0);
  post_first();
  ASSERT_EQ(a_->send(2, from_.piece(0, 8)), 0);
  look();
  pass(kLeastTimeoutNs - 50 * kTestMs);
  b_->take_arrived();  // the first of the two
  pass(50 * kTestMs);
  EXPECT_FALSE(has_failed());
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(LaneTimersTest, time_in_which_nobody_looked_does_not_count) {
  peer_->stopped = true;
  begin_to_wait();
  now_ns_ += 10'000 * kTestMs;  // the program was stopped itself
  look();
  EXPECT_FALSE(has_failed());
  pass(kLeastTimeoutNs + 50 * kTestMs);
  EXPECT_TRUE(has_failed());
}

TEST_F(LaneTimersTest, clock_that_was_read_earlier_changes_nothing) {
  peer_->stopped = true;
  begin_to_wait();
  pass(kLeastTimeoutNs - 100 * kTestMs);
  a_->transport.check_timers(a_->sends, now_ns_ - 200'000 * kTestMs);
  EXPECT_FALSE(has_failed());
}

TEST_F(LaneTimersTest, nothing_under_way_needs_no_timer) {
  begin(IBV_QPT_RC);
  peer_->stopped = true;
  look();
  pass(10'000 * kTestMs);
  EXPECT_FALSE(has_failed());
}

TEST_F(LaneTimersTest, who_sends_meanwhile_is_not_waited_for) {
  begin_to_wait();
  const SendGuard guard(a_->core.locks);
  look();  // would wait for itself for ever
}

TEST_F(LaneTimersTest, peer_that_does_not_get_on_is_rung_ever_less_often) {
  begin_to_wait();
  const auto rings_within = [this](uint64_t ns) {
    const int before = peer_->rings;
    for (const uint64_t end = now_ns_ + ns; now_ns_ < end;) {
      now_ns_ += 100'000;
      look();
    }
    return peer_->rings - before;
  };
  EXPECT_EQ(rings_within(200'000), 0);
  const int first = rings_within(10 * kTestMs);
  EXPECT_GE(first, 3);
  rings_within(50 * kTestMs);
  const int later = rings_within(100 * kTestMs);
  EXPECT_GE(later, 4);  // every 20 ms at least
  EXPECT_LE(later, 6);
}

TEST_F(LaneTimersTest, what_found_no_room_is_tried_again) {
  begin(IBV_QPT_RC);
  for (uint64_t id = 0; id <= link::kLaneSlots; ++id) {
    ASSERT_EQ(a_->send(id, from_.piece(0, 8)), 0);
    ASSERT_EQ(b_->receive(id, {to_.piece(0, 8)}), 0);
  }
  ASSERT_TRUE(a_->core.sends.has_queued());
  look();
  for (int turns = 0; turns < 8; ++turns) {
    b_->take_arrived();
  }
  now_ns_ += kTestMs;
  look();  // the peer got on
  now_ns_ += kTestMs;
  look();
  EXPECT_FALSE(a_->core.sends.has_queued());
}

// --- Receiver not ready.

TEST_F(LaneTimersTest, receiver_without_a_receive_ends_rc_after_its_retries) {
  constexpr uint64_t kTimerNs = 640'000;  // of min_rnr_timer 12
  begin(IBV_QPT_RC);
  a_->core.attributes.rnr_retry = 3;
  post_first();
  b_->take_arrived();
  now_ns_ += kTestMs;
  look();  // learns of it
  now_ns_ += 3 * kTimerNs - 1000;
  look();
  EXPECT_FALSE(has_failed());
  now_ns_ += 2000;
  look();
  ASSERT_TRUE(has_failed());
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_RNR_RETRY_EXC_ERR}}));
  EXPECT_EQ(counter(device_, "rcvd_rnr_err"), 1U);
  EXPECT_EQ(counter(device_, "retry_rnr_exceeded_err"), 1U);
}

TEST_F(LaneTimersTest, seven_rnr_retries_are_for_ever_and_no_timeout_of_another_kind) {
  peer_->stopped = true;
  begin_to_wait();
  b_->take_arrived();
  pass(600'000 * kTestMs);
  EXPECT_FALSE(has_failed());
  ASSERT_EQ(b_->receive(9, {to_.piece(0, 8)}), 0);
  b_->take_arrived();
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(LaneTimersTest, rnr_retries_of_zero_end_rc_at_once) {
  begin(IBV_QPT_RC);
  a_->core.attributes.rnr_retry = 0;
  post_first();
  b_->take_arrived();
  now_ns_ += kTestMs;
  look();
  EXPECT_TRUE(has_failed());
}

TEST_F(LaneTimersTest, receive_that_came_in_time_ends_the_rnr_time) {
  begin(IBV_QPT_RC);
  a_->core.attributes.rnr_retry = 3;
  post_first();
  b_->take_arrived();
  now_ns_ += kTestMs;
  look();
  ASSERT_EQ(b_->receive(9, {to_.piece(0, 8)}), 0);
  now_ns_ += 10 * kTestMs;
  look();
  EXPECT_FALSE(has_failed());
}

TEST_F(LaneTimersTest, rnr_timer_is_the_receivers) {
  begin(IBV_QPT_RC);
  const auto timer = [this] {
    const SendGuard guard(a_->core.locks);
    return a_->transport.rnr_timer_us();
  };
  EXPECT_EQ(timer(), 640U);
  b_->connection.receiver.set_rnr_timer_us(10);
  EXPECT_EQ(timer(), 10U);
}

// --- UC knows no answer: what nobody takes is lost, and complete.

TEST_F(LaneTimersTest, uc_waits_for_a_receive_for_ever) {
  begin_to_wait(IBV_QPT_UC);
  b_->take_arrived();
  pass(600'000 * kTestMs);
  EXPECT_TRUE(a_->sent().empty());
  EXPECT_EQ(a_->state(), IBV_QPS_RTS);
}

TEST_F(LaneTimersTest, uc_loses_what_lies_in_a_closed_lane_after_the_least_time) {
  begin_to_wait(IBV_QPT_UC);
  b_->fail();
  pass(kLeastTimeoutNs - 50 * kTestMs);
  EXPECT_TRUE(a_->sent().empty());
  pass(100 * kTestMs);
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(a_->state(), IBV_QPS_RTS);
}

TEST_F(LaneTimersTest, uc_loses_what_finds_no_lane) {
  begin(IBV_QPT_UC);
  a_->connection.sender.reset();
  post_first();
  pass(4 * kLeastTimeoutNs - 50 * kTestMs);
  EXPECT_TRUE(a_->sent().empty());
  pass(12 * kLeastTimeoutNs + 100 * kTestMs);  // the longer one while our own service thread may have an offer unread
  EXPECT_EQ(a_->sent(), (Ends{{1, IBV_WC_SUCCESS}}));
}

}  // namespace
}  // namespace ringbolt::device
