// ibv_destroy_cq(3), ibv_ack_cq_events(3): who destroys an object waits until each event that was taken is
// acknowledged.

#include "abi/acknowledgements.h"

#include <gtest/gtest.h>

#include <thread>

#include "abi/object_count.h"

namespace ringbolt::abi {
namespace {

using std::chrono::milliseconds;

/// The part of a C structure that events need.
class AcknowledgementsTest : public ::testing::Test {
 protected:
  AcknowledgementsTest() {
    pthread_mutex_init(&mutex_, nullptr);
    pthread_cond_init(&condition_, nullptr);
  }
  ~AcknowledgementsTest() override {
    pthread_cond_destroy(&condition_);
    pthread_mutex_destroy(&mutex_);
  }

  pthread_mutex_t mutex_{};
  pthread_cond_t condition_{};
  uint32_t completed_ = 0;
  Taken taken_;
  const Acknowledgements events_{mutex_, condition_, completed_, taken_};
};

TEST_F(AcknowledgementsTest, without_events_nobody_waits) {
  events_.wait();
  EXPECT_EQ(events_.wait_for(milliseconds(0)), 0U);
}

TEST_F(AcknowledgementsTest, what_is_missing_is_counted) {
  for (int i = 0; i < 3; ++i) {
    events_.take();
  }
  EXPECT_EQ(events_.wait_for(milliseconds(0)), 3U);
  events_.acknowledge(2);
  EXPECT_EQ(events_.wait_for(milliseconds(1)), 1U);
  EXPECT_EQ(completed_, 2U) << "in the C structure, where programs may look";
  events_.acknowledge(1);
  events_.wait();
}

TEST_F(AcknowledgementsTest, several_at_once_count_as_many) {
  events_.take();
  events_.take();
  events_.acknowledge(2);
  EXPECT_EQ(events_.wait_for(milliseconds(0)), 0U);
}

TEST_F(AcknowledgementsTest, counts_wrap) {
  completed_ = UINT32_MAX;
  taken_.events = UINT32_MAX;
  events_.take();
  EXPECT_EQ(events_.wait_for(milliseconds(0)), 1U);
  events_.acknowledge(1);
  EXPECT_EQ(completed_, 0U);
  events_.wait();
}

TEST_F(AcknowledgementsTest, who_waits_goes_on_with_the_last_one_and_not_before) {
  constexpr uint32_t kEvents = 4;
  for (uint32_t i = 0; i < kEvents; ++i) {
    events_.take();
  }
  uint32_t seen = 0;
  std::thread waits([&] {
    events_.wait();
    pthread_mutex_lock(&mutex_);
    seen = completed_;
    pthread_mutex_unlock(&mutex_);
  });
  for (uint32_t i = 0; i < kEvents; ++i) {
    events_.acknowledge(1);
  }
  waits.join();
  EXPECT_EQ(seen, kEvents);
}

TEST_F(AcknowledgementsTest, a_long_limit_ends_with_the_acknowledgement) {
  events_.take();
  uint32_t missing = 99;
  std::thread waits([&] { missing = events_.wait_for(std::chrono::hours(1)); });
  events_.acknowledge(1);
  waits.join();
  EXPECT_EQ(missing, 0U);
}

TEST(ObjectCount, counts_places_from_their_making_to_their_end) {
  ObjectCount count;
  EXPECT_TRUE(count.is_empty());
  {
    const ObjectCount::Place one(count);
    EXPECT_FALSE(count.is_empty());
    const ObjectCount::Place nowhere;
  }
  EXPECT_TRUE(count.is_empty());
}

TEST(ObjectCount, a_place_that_moves_counts_once) {
  ObjectCount count;
  ObjectCount::Place kept;
  {
    ObjectCount::Place made(count);
    kept = std::move(made);
  }
  EXPECT_FALSE(count.is_empty());
  ObjectCount::Place moved(std::move(kept));
  kept.leave();  // NOLINT(bugprone-use-after-move): it counts nowhere
  EXPECT_FALSE(count.is_empty());
  moved.leave();
  EXPECT_TRUE(count.is_empty());
  moved.leave();
  EXPECT_TRUE(count.is_empty()) << "once";
}

TEST(ObjectCount, an_object_that_changes_to_another_context_counts_there) {
  ObjectCount one;
  ObjectCount other;
  ObjectCount::Place place(one);
  place = ObjectCount::Place(other);
  EXPECT_TRUE(one.is_empty());
  EXPECT_FALSE(other.is_empty());
  ObjectCount::Place& same = place;
  place = std::move(same);
  EXPECT_FALSE(other.is_empty());
  place = {};
  EXPECT_TRUE(other.is_empty());
}

}  // namespace
}  // namespace ringbolt::abi
