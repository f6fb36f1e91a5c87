#include "device/queue_pair_numbers.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <set>
#include <thread>
#include <vector>

namespace ringbolt::device {
namespace {

TEST(QueuePairNumbers, name_the_slot_and_follow_one_another) {
  QueuePairNumbers numbers(3, 100);
  EXPECT_EQ(numbers.take(), (3U << 14U) + 100);
  EXPECT_EQ(numbers.take(), (3U << 14U) + 101);
}

TEST(QueuePairNumbers, of_the_last_slot_have_24_bits) {
  QueuePairNumbers numbers(1023, kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), 0xffffffU);
  EXPECT_EQ(numbers.take(), 1023U << 14U);
}

TEST(QueuePairNumbers, wrap_within_their_slot) {
  QueuePairNumbers numbers(1, kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), (1U << 14U) + kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), 1U << 14U);  // not the next slot's
}

TEST(QueuePairNumbers, start_anywhere) {
  QueuePairNumbers numbers(2, UINT32_MAX);  // kMaxQueuePairs divides 2^32
  EXPECT_EQ(numbers.take(), (2U << 14U) + kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), 2U << 14U);
}

TEST(QueuePairNumbers, of_slot_0_are_never_those_of_management) {
  QueuePairNumbers numbers(0, kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), kMaxQueuePairs - 1);
  EXPECT_EQ(numbers.take(), 2U);
}

TEST(QueuePairNumbers, rest_as_long_as_any_other_can_be_had) {
  QueuePairNumbers numbers(1, 0);
  const uint32_t first = numbers.take().value();
  numbers.give_back(first);
  for (uint32_t i = 1; i < kMaxQueuePairs; ++i) {
    const uint32_t next = numbers.take().value();
    ASSERT_EQ(next, first + i);
    numbers.give_back(next);
  }
  EXPECT_EQ(numbers.take(), first);
}

TEST(QueuePairNumbers, that_are_taken_are_passed_over) {
  QueuePairNumbers numbers(1, 10);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(numbers.take());  // 10, 11, 12
  }
  for (uint32_t i = 0; i < kMaxQueuePairs - 3; ++i) {
    numbers.give_back(numbers.take().value());
  }
  numbers.give_back((1U << 14U) + 11);
  EXPECT_EQ(numbers.take(), (1U << 14U) + 11);  // 10 is not free
  EXPECT_EQ(numbers.take(), (1U << 14U) + 13);  // nor 12
}

TEST(QueuePairNumbers, run_out_and_are_given_out_again) {
  for (const uint32_t slot : {0U, 5U}) {
    QueuePairNumbers numbers(slot, 0);
    std::set<uint32_t> all;
    while (const auto number = numbers.take()) {
      EXPECT_TRUE(all.insert(*number).second) << *number;
    }
    EXPECT_EQ(all.size(), slot == 0 ? kMaxQueuePairs - 2 : kMaxQueuePairs);
    EXPECT_FALSE(numbers.take());
    const uint32_t freed = (slot << 14U) + 77;
    numbers.give_back(freed);
    numbers.give_back(freed);  // free is free
    EXPECT_EQ(numbers.take(), freed);
    EXPECT_FALSE(numbers.take());
  }
}

// Each begins every few numbers when all do: none of them takes most before the others run.
TEST(QueuePairNumbers, are_given_to_one_of_many_threads_each) {
  constexpr size_t kThreads = 3;
  constexpr size_t kAtATime = 16;
  QueuePairNumbers numbers(1, 0);
  std::vector<std::vector<uint32_t>> taken(kThreads);
  std::vector<std::thread> threads;
  std::barrier all_begin(static_cast<std::ptrdiff_t>(kThreads));
  for (auto& mine : taken) {
    threads.emplace_back([&] {
      all_begin.arrive_and_wait();
      while (const auto number = numbers.take()) {
        mine.push_back(*number);
        if (mine.size() % kAtATime == 0) {
          all_begin.arrive_and_wait();
        }
      }
      all_begin.arrive_and_drop();
    });
  }
  std::set<uint32_t> all;
  for (size_t i = 0; i < threads.size(); ++i) {
    threads[i].join();
    all.insert(taken[i].begin(), taken[i].end());
  }
  EXPECT_EQ(taken[0].size() + taken[1].size() + taken[2].size(), kMaxQueuePairs);
  EXPECT_EQ(all.size(), kMaxQueuePairs);
}

}  // namespace
}  // namespace ringbolt::device
