// InfiniBand Architecture Specification 1.4, 11.4.2.2: one event for each request for notification.

#include "device/completion_events.h"

#include <gtest/gtest.h>

#include "device/completion_ring.h"
#include "device/wake_test_support.h"

namespace ringbolt::device {
namespace {

using link::Notify;

/// Completions by their numbers alone, as a queue has them.
class CompletionEventsTest : public WakeEntryTest {
 protected:
  /// `is_solicited`: or failed.
  void complete(bool is_solicited = false) {
    ++committed_;
    last_solicited_ = is_solicited ? committed_ : last_solicited_;
    if (entry_->notify() != Notify::nothing) {
      events_.announce(is_solicited, committed_);
    }
  }
  void poll_all() { taken_ = committed_; }
  /// `finds`: so many completions when it looks for that of an event.
  void request(bool solicited_only = false, int finds = 0) {
    entry_->make_room();
    entry_->show_arming();
    if (events_.begin_request()) {
      ++looks_;
      for (int i = 0; i < finds; ++i) {
        complete();
      }
    }
    events_.arm(solicited_only);
    events_.announce_unread(taken_, committed_, last_solicited_);
  }

  CompletionEvents events_{*entry_};
  uint64_t committed_ = 0;
  uint64_t taken_ = 0;
  uint64_t last_solicited_ = 0;
  int looks_ = 0;
};

TEST_F(CompletionEventsTest, nobody_asked_for_one) {
  complete();
  complete(true);
  EXPECT_EQ(events(), 0);
}

TEST_F(CompletionEventsTest, one_for_each_request) {
  for (int round = 0; round < 3; ++round) {
    request();
    complete();
    complete();
    EXPECT_EQ(events(), 1);
    EXPECT_FALSE(entry_->is_armed());
    poll_all();
  }
}

TEST_F(CompletionEventsTest, requests_without_a_completion_between_them_are_one) {
  request();
  request();
  complete();
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, who_waits_for_solicited_ones_sleeps_on_for_others) {
  request(true);
  complete();
  complete();
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(entry_->notify(), Notify::solicited);
  complete(true);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, wider_wish_is_not_narrowed) {
  request(false);
  request(true);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, narrower_wish_is_widened) {
  request(true);
  request(false);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, wider_wish_ends_with_its_event) {
  request(false);
  complete();
  ASSERT_EQ(events(), 1);
  poll_all();
  request(true);
  complete();
  EXPECT_EQ(events(), 0);
}

// --- A request that comes after the completion.

TEST_F(CompletionEventsTest, what_lies_there_unread_raises_one_at_once) {
  complete();
  request();
  EXPECT_EQ(events(), 1);
  EXPECT_FALSE(entry_->is_armed());
}

TEST_F(CompletionEventsTest, what_was_polled_raises_none) {
  complete(true);
  poll_all();
  request();
  EXPECT_EQ(events(), 0);
  EXPECT_TRUE(entry_->is_armed());
}

TEST_F(CompletionEventsTest, who_waits_for_solicited_ones_is_woken_by_an_unread_one_among_others) {
  complete();
  request(true);
  EXPECT_EQ(events(), 0);
  EXPECT_TRUE(entry_->is_armed());
  poll_all();
  complete(true);
  ASSERT_EQ(events(), 1);
  poll_all();
  complete(true);
  complete();
  request(true);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, solicited_one_that_was_polled_wakes_nobody) {
  complete(true);
  poll_all();
  complete();
  request(true);
  EXPECT_EQ(events(), 0);
}

TEST_F(CompletionEventsTest, what_has_raised_one_raises_no_second_one) {
  request();
  complete();
  ASSERT_EQ(events(), 1);
  request();  // before it is read, as perftest does
  EXPECT_EQ(events(), 0);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, what_came_behind_the_one_that_raised_it_raises_one) {
  request();
  complete();
  complete();
  ASSERT_EQ(events(), 1);
  request();
  EXPECT_EQ(events(), 1);
  request();
  EXPECT_EQ(events(), 0);
}

TEST_F(CompletionEventsTest, event_of_an_arming_stands_for_one_of_the_unread) {
  complete();
  complete();
  for (const int expected : {1, 1, 0}) {
    request();
    EXPECT_EQ(events(), expected);
  }
}

TEST_F(CompletionEventsTest, solicited_one_that_stays_when_others_are_forgotten_is_told_of) {
  CompletionRing ring(4);
  for (const uint32_t qpn : {7U, 8U}) {
    ring.next() = {};
    ring.next().qp_num = qpn;
    ring.commit(qpn == 7);
  }
  ring.forget(8);
  events_.begin_request();
  events_.arm(true);
  events_.announce_unread(ring.taken(), ring.committed(), ring.last_solicited());
  EXPECT_EQ(events(), 1);
}

// --- Events that peers raise before the completion is seen.

TEST_F(CompletionEventsTest, first_completion_since_is_that_of_the_peers_event) {
  request();
  peer_.ring();
  ASSERT_EQ(events(), 1);
  complete();
  request();
  EXPECT_EQ(looks_, 0) << "it was seen";
  EXPECT_EQ(events(), 0);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, completion_of_the_peers_event_is_looked_for_before_the_next_arming) {
  request();
  peer_.ring();
  ASSERT_EQ(events(), 1);
  request(false, 1);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(events(), 0);
  EXPECT_TRUE(entry_->is_armed());
}

TEST_F(CompletionEventsTest, completions_behind_that_of_the_peers_event_raise_one) {
  request();
  peer_.ring();
  ASSERT_EQ(events(), 1);
  request(false, 2);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, peers_event_for_what_completes_nothing_takes_none_from_the_next) {
  request();
  peer_.ring();
  ASSERT_EQ(events(), 1);
  request();
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(events(), 0);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, peers_event_that_was_not_taken_yet_is_not_lost) {
  request();
  peer_.ring();
  request(false, 1);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(events(), 1);
  complete();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, completion_that_is_not_solicited_is_not_that_of_a_solicited_event) {
  request(true);
  peer_.ring();
  ASSERT_EQ(events(), 1);
  complete();
  EXPECT_TRUE(events_.begin_request()) << "still to be looked for";
  complete(true);
  EXPECT_FALSE(events_.begin_request());
}

TEST_F(CompletionEventsTest, own_ring_is_like_that_of_a_peer) {
  request();
  EXPECT_TRUE(entry_->ring());
  ASSERT_EQ(events(), 1);
  request(false, 1);
  EXPECT_EQ(looks_, 1);
  EXPECT_EQ(events(), 0);
}

// --- RINGBOLT_SHUFFLE.

TEST_F(CompletionEventsTest, one_that_nothing_came_for_is_that_of_its_request) {
  request();
  events_.raise_anyway();
  EXPECT_EQ(events(), 1);
  complete();
  EXPECT_EQ(events(), 0);
  request();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, what_comes_behind_it_is_of_the_next_request_though_a_peer_has_raised_one) {
  request();
  peer_.ring();
  events_.raise_anyway();
  ASSERT_EQ(events(), 1);
  complete();
  request();
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionEventsTest, knows_whether_somebody_may_have_been_woken_for_what_is_unread) {
  complete();
  EXPECT_FALSE(events_.may_have_told(taken_));
  poll_all();
  request();
  EXPECT_TRUE(events_.may_have_told(taken_)) << "it is waited for";
  complete();
  EXPECT_TRUE(events_.may_have_told(taken_));
  poll_all();
  EXPECT_FALSE(events_.may_have_told(taken_));
}

// --- The end.

TEST_F(CompletionEventsTest, none_after_the_queue_has_retired) {
  request();
  EXPECT_FALSE(events_.is_retired());
  events_.retire();
  EXPECT_TRUE(events_.is_retired());
  complete();
  peer_.ring();
  EXPECT_EQ(events(), 0);
  channel_.reset();
  events_.on_peer_gone();
  events_.retire();  // what the channel gave is given back once
}

TEST_F(CompletionEventsTest, peers_event_that_was_not_taken_ends_with_the_queue) {
  request();
  peer_.ring();
  events_.retire();
  EXPECT_FALSE(is_readable());
  EXPECT_EQ(events(), 0);
}

}  // namespace
}  // namespace ringbolt::device
