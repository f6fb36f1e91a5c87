// Completion queues: InfiniBand Architecture Specification 1.4, 11.4.2 (polling, and one event for each request for
// notification), 10.10.2.1 (overflow). Its parts have tests of their own: completion_ring_test.cpp,
// completion_events_test.cpp, wake_entry_test.cpp, receiver_list_test.cpp, poll_backoff_test.cpp.

#include "device/completion_queue.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "device/completion_channel.h"
#include "device/lane_test_support.h"
#include "device/part_test_support.h"

namespace ringbolt::device {
namespace {

/// A queue whose completions are the test's.
class CompletionQueueTest : public testing::Test {
 protected:
  void begin(uint32_t cqe) {
    end();
    queue_ = *CompletionQueue::create(device_.context(), cqe, &channel_);
    queue_->handle = &handle_;
  }
  ~CompletionQueueTest() override { end(); }
  void end() {
    if (queue_ != nullptr) {
      queue_->retire();
      device_.process().remove(*queue_);
      queue_.reset();
    }
  }
  void complete(uint64_t id, ibv_wc_status status = IBV_WC_SUCCESS, bool is_solicited = false, uint32_t qpn = 1) {
    const base::LockGuard guard(queue_->lock);
    ibv_wc& wc = queue_->next();
    wc = {};
    wc.wr_id = id;
    wc.status = status;
    wc.qp_num = qpn;
    queue_->commit(status, is_solicited);
  }
  std::vector<uint64_t> poll(int count) {
    std::vector<ibv_wc> all(static_cast<size_t>(count));
    const int taken = queue_->poll(count, all.data());
    std::vector<uint64_t> ids;
    for (int i = 0; i < taken; ++i) {
      ids.push_back(all[static_cast<size_t>(i)].wr_id);
    }
    return ids;
  }
  bool has_room() {
    const base::LockGuard guard(queue_->lock);
    return queue_->has_room();
  }
  /// How many events wait; takes them.
  int events() {
    int count = 0;
    pollfd one{channel_.descriptor(), POLLIN, 0};
    while (::poll(&one, 1, 0) == 1) {
      CompletionQueue* taken = nullptr;
      EXPECT_EQ(channel_.take(taken, [](CompletionQueue&) {}), 0);
      EXPECT_EQ(taken, queue_.get());
      ++count;
    }
    return count;
  }

  using List = std::vector<uint64_t>;
  DeviceUnderTest device_;
  CompletionChannel channel_{device_.process().wakes()};
  ibv_cq handle_{};
  std::shared_ptr<CompletionQueue> queue_;
};

TEST_F(CompletionQueueTest, has_from_one_to_as_many_entries_as_the_device_says) {
  for (const auto& [cqe, error] : {std::pair{0U, EINVAL}, {1U, 0}, {kMaxCqe, 0}, {kMaxCqe + 1, EINVAL}}) {
    const auto made = CompletionQueue::create(device_.context(), cqe, nullptr);
    EXPECT_EQ(made ? 0 : made.error().value, error) << cqe;
    if (made) {
      EXPECT_EQ((*made)->capacity(), cqe);
      device_.process().remove(**made);
    }
  }
}

TEST_F(CompletionQueueTest, gives_completions_out_in_their_order_as_many_as_are_asked_for) {
  begin(8);
  EXPECT_EQ(poll(4), List{});
  for (uint64_t id = 1; id <= 5; ++id) {
    complete(id);
  }
  EXPECT_EQ(poll(2), (List{1, 2}));
  EXPECT_EQ(poll(1), (List{3}));
  EXPECT_EQ(poll(8), (List{4, 5}));
  EXPECT_EQ(poll(8), List{});
}

TEST_F(CompletionQueueTest, nobody_asks_for_none) {
  begin(2);
  complete(1);
  EXPECT_EQ(queue_->poll(0, nullptr), 0);
  EXPECT_EQ(queue_->poll(-1, nullptr), 0);
  EXPECT_EQ(poll(1), (List{1}));
}

TEST_F(CompletionQueueTest, is_full_with_as_many_as_it_holds) {
  begin(2);
  EXPECT_TRUE(has_room());
  complete(1);
  EXPECT_TRUE(has_room());
  complete(2);
  EXPECT_FALSE(has_room());
  poll(1);
  EXPECT_TRUE(has_room());
}

TEST_F(CompletionQueueTest, one_too_many_is_an_error_that_is_told_once) {
  begin(2);
  complete(1);
  complete(2);
  complete(3);
  complete(4);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CQ_ERR);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
  EXPECT_EQ(poll(8), (List{1, 2}));  // what had room is there
  ibv_wc wc;
  EXPECT_EQ(queue_->poll(1, &wc), -1);
}

// --- Notification.

TEST_F(CompletionQueueTest, raises_one_event_for_each_arming) {
  begin(8);
  queue_->request_notification(false);
  EXPECT_TRUE(queue_->is_armed());
  complete(1);
  complete(2);
  EXPECT_EQ(events(), 1);
  EXPECT_FALSE(queue_->is_armed());
  poll(8);
  queue_->request_notification(false);
  queue_->request_notification(false);
  complete(3);
  complete(4);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, armed_for_solicited_ones_raises_for_these_and_for_errors) {
  begin(8);
  queue_->request_notification(true);
  complete(1);
  EXPECT_EQ(events(), 0);
  complete(2, IBV_WC_SUCCESS, true);
  EXPECT_EQ(events(), 1);
  poll(8);
  queue_->request_notification(true);
  complete(3);
  EXPECT_EQ(events(), 0);
  complete(4, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, raises_at_once_for_what_lay_there_unread) {
  begin(8);
  complete(1);
  queue_->request_notification(false);
  EXPECT_EQ(events(), 1);
  EXPECT_EQ(poll(8), (List{1}));
}

TEST_F(CompletionQueueTest, raises_at_once_only_if_what_lay_there_is_of_the_kind) {
  begin(8);
  complete(1);
  queue_->request_notification(true);
  EXPECT_EQ(events(), 0);
  EXPECT_TRUE(queue_->is_armed());
  complete(2, IBV_WC_SUCCESS, true);
  EXPECT_EQ(events(), 1);
  poll(8);
  complete(3, IBV_WC_SUCCESS, true);
  complete(4);
  queue_->request_notification(true);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, what_has_raised_an_event_raises_no_second_one) {
  begin(8);
  queue_->request_notification(false);
  complete(1);
  ASSERT_EQ(events(), 1);
  queue_->request_notification(false);  // armed before it is read, as perftest does
  EXPECT_EQ(events(), 0);
  EXPECT_EQ(poll(8), (List{1}));
  complete(2);
  EXPECT_EQ(events(), 1);
}

TEST_F(CompletionQueueTest, retired_queue_raises_no_event) {
  begin(8);
  queue_->request_notification(false);
  queue_->retire();
  complete(1);
  EXPECT_EQ(events(), 0);
}

TEST_F(CompletionQueueTest, queue_without_a_channel_can_be_armed) {
  const auto bare = *CompletionQueue::create(device_.context(), 2, nullptr);
  bare->request_notification(false);
  EXPECT_TRUE(bare->is_armed());
  {
    const base::LockGuard guard(bare->lock);
    bare->next() = {};
    bare->commit(IBV_WC_SUCCESS, false);
  }
  EXPECT_FALSE(bare->is_armed());
  device_.process().remove(*bare);
}

// --- Size.

TEST_F(CompletionQueueTest, grows_with_what_is_in_it) {
  begin(2);
  complete(1);
  poll(1);
  complete(2);
  complete(3);  // around its end
  ASSERT_EQ(queue_->resize(4), 0);
  EXPECT_EQ(queue_->capacity(), 4U);
  complete(4);
  complete(5);
  EXPECT_FALSE(has_room());
  EXPECT_EQ(poll(8), (List{2, 3, 4, 5}));
}

TEST_F(CompletionQueueTest, shrinks_to_what_is_in_it_and_no_further) {
  begin(8);
  complete(1);
  complete(2);
  EXPECT_EQ(queue_->resize(1), EINVAL);
  EXPECT_EQ(queue_->resize(0), EINVAL);
  EXPECT_EQ(queue_->resize(kMaxCqe + 1), EINVAL);
  EXPECT_EQ(queue_->capacity(), 8U);
  EXPECT_EQ(queue_->resize(2), 0);
  EXPECT_FALSE(has_room());
  EXPECT_EQ(poll(8), (List{1, 2}));
}

TEST_F(CompletionQueueTest, size_changes_nothing_about_an_arming) {
  begin(2);
  queue_->request_notification(false);
  ASSERT_EQ(queue_->resize(4), 0);
  complete(1);
  EXPECT_EQ(events(), 1);
}

// --- Queue pairs that go.

TEST_F(CompletionQueueTest, forgets_the_completions_of_one_queue_pair) {
  begin(4);
  complete(0, IBV_WC_SUCCESS, false, 9);
  poll(1);
  for (uint64_t id = 1; id <= 4; ++id) {
    complete(id, IBV_WC_SUCCESS, false, id % 2 == 0 ? 7 : 8);
  }
  queue_->forget(7);
  EXPECT_EQ(poll(8), (List{1, 3}));
}

TEST_F(CompletionQueueTest, knows_whose_good_completions_lie_in_it) {
  begin(4);
  complete(1, IBV_WC_WR_FLUSH_ERR, false, 7);
  complete(2, IBV_WC_SUCCESS, false, 8);
  EXPECT_FALSE(queue_->holds_success_of(7));
  EXPECT_TRUE(queue_->holds_success_of(8));
  poll(2);
  EXPECT_FALSE(queue_->holds_success_of(8));
}

// --- With queue pairs, which put their completions in when they are asked.

class BusyQueueTest : public testing::Test {
 protected:
  void begin(uint32_t cqe) {
    a_ = std::make_unique<End>(device_, IBV_QPT_RC, End::Depths{.cqe = 64});
    b_ = std::make_unique<End>(device_, IBV_QPT_RC, End::Depths{.cqe = cqe});
    connect(*a_, *b_);
    ASSERT_EQ(b_->receive(0, data_.piece(8, 8)), 0);
    ASSERT_EQ(a_->send(0, data_.piece(0, 8)), 0);  // the lanes are there from here on
    ASSERT_EQ(b_->await_receive().status, IBV_WC_SUCCESS);
    ASSERT_EQ(a_->await_send().status, IBV_WC_SUCCESS);
  }
  void carry(uint64_t count) {
    for (uint64_t id = 1; id <= count; ++id) {
      ASSERT_EQ(b_->receive(id, data_.piece(8, 8)), 0);
    }
    for (uint64_t id = 1; id <= count; ++id) {
      ASSERT_EQ(a_->send(id, data_.piece(0, 8)), 0);
    }
  }
  DeviceUnderTest device_;
  Memory data_{device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE};
  std::unique_ptr<End> a_;
  std::unique_ptr<End> b_;
};

TEST_F(BusyQueueTest, poll_takes_no_more_than_it_asked_for_and_loses_nothing) {
  begin(1);
  carry(10);
  uint64_t next = 1;
  while (next <= 10) {
    std::array<ibv_wc, 3> some{};
    const int taken = b_->receives().poll(3, some.data());
    ASSERT_GE(taken, 0);
    ASSERT_LE(taken, 3);
    for (int i = 0; i < taken; ++i) {
      ASSERT_EQ(some[static_cast<size_t>(i)].wr_id, next++);
    }
  }
  EXPECT_EQ(b_->poll_receive().status, End::kNothing);
}

TEST_F(BusyQueueTest, program_that_does_not_poll_for_long_overruns_its_queue) {
  begin(1);
  carry(3);
  b_->receives().serve(base::now_ns() + 10'000'000'000);  // as the service thread does, much later
  EXPECT_EQ(b_->state(), IBV_QPS_ERR);
  bool has_cq_error = false;
  bool has_fatal = false;
  for (auto event = device_.next_event(); event != IBV_EVENT_CLIENT_REREGISTER; event = device_.next_event()) {
    has_cq_error = has_cq_error || event == IBV_EVENT_CQ_ERR;
    has_fatal = has_fatal || event == IBV_EVENT_QP_FATAL;
  }
  EXPECT_TRUE(has_cq_error);
  EXPECT_TRUE(has_fatal);
}

TEST_F(BusyQueueTest, service_waits_for_a_program_that_polls) {
  begin(1);
  carry(3);
  b_->receives().take_arrived();
  EXPECT_EQ(b_->state(), IBV_QPS_RTS);
  for (uint64_t id = 1; id <= 3; ++id) {
    EXPECT_EQ(b_->await_receive().wr_id, id);
  }
}

TEST_F(BusyQueueTest, service_says_what_no_bell_will_announce) {
  begin(8);
  EXPECT_EQ(a_->sends().serve(base::now_ns()), Remains::nothing);
  ASSERT_EQ(a_->send(1, data_.piece(0, 8)), 0);  // without a receive there
  EXPECT_EQ(a_->sends().serve(base::now_ns()), Remains::nothing);
  a_->sends().request_notification(false);
  EXPECT_EQ(a_->sends().serve(base::now_ns()), Remains::timers);
  ASSERT_EQ(a_->to(IBV_QPS_SQD), 0);
  ASSERT_EQ(a_->send(2, data_.piece(0, 8)), 0);
  EXPECT_EQ(a_->sends().serve(base::now_ns()), Remains::work);
}

TEST_F(BusyQueueTest, knows_whether_queue_pairs_use_it) {
  begin(8);
  EXPECT_TRUE(a_->sends().is_attached());
  const auto bare = *CompletionQueue::create(device_.context(), 2, nullptr);
  EXPECT_FALSE(bare->is_attached());
  device_.process().remove(*bare);
}

TEST(FaultyPoll, is_refused_with_the_number_of_the_fault) {
  DeviceUnderTest device("", "call-errno call poll-cq errno EIO count 1-1");
  const auto queue = *CompletionQueue::create(device.context(), 2, nullptr);
  ibv_wc wc;
  EXPECT_EQ(queue->poll(1, &wc), 0);
  errno = 0;
  EXPECT_EQ(queue->poll(1, &wc), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(queue->poll(1, &wc), 0);
  device.process().remove(*queue);
}

}  // namespace
}  // namespace ringbolt::device
