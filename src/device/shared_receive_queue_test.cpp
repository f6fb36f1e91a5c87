// InfiniBand Architecture Specification 1.4, 10.2.9 (shared receive queues).

#include "device/shared_receive_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

class SharedReceiveQueueTest : public testing::Test {
 protected:
  void begin(uint32_t depth) {
    queue_.reset();
    queue_ = *SharedReceiveQueue::create(device_.pd(), {depth, 2, 0});
  }
  int post(uint64_t id, int pieces = 1) {
    std::array<ibv_sge, 3> list{ibv_sge{id, 1, 2}, ibv_sge{id + 1, 3, 4}, ibv_sge{id + 2, 5, 6}};
    ibv_recv_wr wr{id, nullptr, list.data(), pieces};
    ibv_recv_wr* bad = nullptr;
    const int error = queue_->post(&wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  /// The same, which the program calls `name`, from a place of that number.
  void post_noted(uint64_t id, uint64_t name, uintptr_t place) {
    ibv_recv_wr original{name, nullptr, nullptr, 0};
    ibv_recv_wr wr{id, nullptr, nullptr, 0};
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(queue_->post_noted(&wr, &bad, {{{place}}, 0, &original}), 0);
  }
  /// The number of the oldest; UINT64_MAX: there is none.
  uint64_t take() {
    uint64_t id = UINT64_MAX;
    queue_->take(id, taken_.data(), taken_count_, false);
    return id;
  }
  int set(uint32_t depth, uint32_t limit, int mask) { return queue_->modify({depth, 0, limit}, mask); }
  bool has_limit_event() { return device_.next_event() == IBV_EVENT_SRQ_LIMIT_REACHED; }

  DeviceUnderTest device_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  std::array<ibv_sge, kMaxSge> taken_{};
  uint32_t taken_count_ = 0;
};

TEST_F(SharedReceiveQueueTest, is_made_within_the_limits_of_the_device) {
  const auto error_of = [this](uint32_t depth, uint32_t pieces) {
    const auto made = SharedReceiveQueue::create(device_.pd(), {depth, pieces, 0});
    return made ? 0 : made.error().value;
  };
  EXPECT_EQ(error_of(0, 1), EINVAL);
  EXPECT_EQ(error_of(1, 1), 0);
  EXPECT_EQ(error_of(kMaxSrqDepth, kMaxSge), 0);
  EXPECT_EQ(error_of(kMaxSrqDepth + 1, 1), EINVAL);
  EXPECT_EQ(error_of(1, kMaxSge + 1), EINVAL);
}

TEST_F(SharedReceiveQueueTest, keeps_its_domain_as_long_as_it_lives) {
  const uint32_t before = device_.pd().users.load();
  begin(1);
  EXPECT_EQ(device_.pd().users.load(), before + 1);
  queue_.reset();
  EXPECT_EQ(device_.pd().users.load(), before);
}

TEST_F(SharedReceiveQueueTest, gives_out_what_was_posted_in_its_order) {
  begin(3);
  EXPECT_EQ(take(), UINT64_MAX);
  for (uint64_t id = 10; id < 20; ++id) {
    ASSERT_EQ(post(id, 2), 0);
    ASSERT_EQ(take(), id);
    ASSERT_EQ(taken_count_, 2U);
    EXPECT_EQ(taken_[1].addr, id + 1);
    EXPECT_EQ(taken_[1].lkey, 4U);
  }
}

TEST_F(SharedReceiveQueueTest, knows_whence_receives_came_until_far_more_were_posted) {
  constexpr uint64_t kLater = 1000;
  begin(4);
  EXPECT_FALSE(queue_->noted(1).site);
  post_noted(1, 77, 11);
  post_noted(2, 78, 12);
  EXPECT_EQ(queue_->noted(1).wr_id, 77U);
  EXPECT_EQ(queue_->noted(1).site.returns[0], 11U);
  EXPECT_EQ(queue_->noted(2).wr_id, 78U);
  EXPECT_FALSE(queue_->noted(0).site);  // nor is an entry that nobody has written to
  take(), take();
  for (uint64_t id = 3; id < kLater; ++id) {
    post_noted(id, id + 76, id + 10);
    EXPECT_EQ(queue_->noted(id).wr_id, id + 76);
    EXPECT_EQ(queue_->noted(id > 6 ? id - 4 : id).wr_id, id > 6 ? id + 72 : id + 76);  // as many as it is deep, and one
    take();
  }
  EXPECT_FALSE(queue_->noted(1).site);
  post_noted(5, 500, 501);
  EXPECT_EQ(queue_->noted(5).site.returns[0], 501U);  // the newest of that number
}

TEST_F(SharedReceiveQueueTest, keeps_notes_when_it_grows) {
  begin(1);
  for (uint64_t id = 1; id < 200; ++id) {  // around the end of what is kept
    post_noted(id, id, id);
    take();
  }
  ASSERT_EQ(set(1000, 0, IBV_SRQ_MAX_WR), 0);
  post_noted(200, 200, 200);
  for (uint64_t id = 190; id <= 200; ++id) {
    EXPECT_EQ(queue_->noted(id).wr_id, id);
  }
}

TEST_F(SharedReceiveQueueTest, takes_as_many_as_it_is_deep) {
  begin(2);
  EXPECT_EQ(post(1), 0);
  EXPECT_EQ(post(2), 0);
  EXPECT_EQ(post(3), ENOMEM);
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(post(3), 0);
  EXPECT_EQ(take(), 2U);
  EXPECT_EQ(take(), 3U);
}

TEST_F(SharedReceiveQueueTest, refuses_too_many_pieces) {
  begin(2);
  EXPECT_EQ(post(1, 2), 0);
  EXPECT_EQ(post(2, 3), EINVAL);
  EXPECT_EQ(post(2, -1), EINVAL);
}

TEST_F(SharedReceiveQueueTest, list_is_posted_up_to_the_one_that_finds_no_room) {
  begin(2);
  std::array<ibv_recv_wr, 3> list{};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {i, i + 1 < list.size() ? &list[i + 1] : nullptr, nullptr, 0};
  }
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue_->post(list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[2]);
  EXPECT_EQ(take(), 0U);
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(take(), UINT64_MAX);
}

// "The event is generated when the number of WRs falls below the limit", and disarms it.
TEST_F(SharedReceiveQueueTest, tells_once_that_fewer_than_the_limit_are_left) {
  begin(4);
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(post(id), 0);
  }
  ASSERT_EQ(set(0, 3, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(queue_->query().srq_limit, 3U);
  take();
  EXPECT_FALSE(has_limit_event());  // three are as many as the limit
  take();
  EXPECT_TRUE(has_limit_event());
  EXPECT_EQ(queue_->query().srq_limit, 0U);
  take();
  EXPECT_FALSE(has_limit_event());
}

TEST_F(SharedReceiveQueueTest, tells_again_when_armed_again) {
  begin(4);
  for (int life = 0; life < 3; ++life) {
    ASSERT_EQ(post(1), 0);
    ASSERT_EQ(set(0, 1, IBV_SRQ_LIMIT), 0);
    take();
    EXPECT_TRUE(has_limit_event()) << life;
  }
}

TEST_F(SharedReceiveQueueTest, limit_is_at_most_its_depth) {
  begin(4);
  EXPECT_EQ(set(0, 5, IBV_SRQ_LIMIT), EINVAL);
  EXPECT_EQ(set(0, 4, IBV_SRQ_LIMIT), 0);
  EXPECT_EQ(set(8, 8, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), 0);  // of the new depth
  EXPECT_EQ(set(8, 9, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(queue_->query().max_wr, 8U);
  EXPECT_EQ(queue_->query().srq_limit, 8U);
}

TEST_F(SharedReceiveQueueTest, grows_with_what_is_posted_in_it) {
  begin(2);
  ASSERT_EQ(post(1), 0);
  ASSERT_EQ(take(), 1U);  // the next two lie around its end
  ASSERT_EQ(post(2, 2), 0);
  ASSERT_EQ(post(3), 0);
  ASSERT_EQ(set(4, 0, IBV_SRQ_MAX_WR), 0);
  EXPECT_EQ(post(4), 0);
  EXPECT_EQ(post(5), 0);
  EXPECT_EQ(post(6), ENOMEM);
  EXPECT_EQ(take(), 2U);
  EXPECT_EQ(taken_count_, 2U);
  for (uint64_t id = 3; id <= 5; ++id) {
    EXPECT_EQ(take(), id);
  }
}

TEST_F(SharedReceiveQueueTest, shrinks_to_what_is_posted_and_no_further) {
  begin(4);
  ASSERT_EQ(post(1), 0);
  ASSERT_EQ(post(2), 0);
  EXPECT_EQ(set(1, 0, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(queue_->query().max_wr, 4U);
  EXPECT_EQ(set(2, 0, IBV_SRQ_MAX_WR), 0);
  EXPECT_EQ(post(3), ENOMEM);
  EXPECT_EQ(set(0, 0, IBV_SRQ_MAX_WR), EINVAL);
  EXPECT_EQ(set(kMaxSrqDepth + 1, 0, IBV_SRQ_MAX_WR), EINVAL);
}

TEST_F(SharedReceiveQueueTest, knows_no_other_attribute) {
  begin(4);
  EXPECT_EQ(set(4, 0, 1 << 5), EINVAL);
  EXPECT_EQ(set(4, 0, 0), 0);
}

}  // namespace
}  // namespace ringbolt::device
