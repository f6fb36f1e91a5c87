#include "circuit/tasks.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>

#include "base/clock.h"

namespace ringbolt::circuit {
namespace {

constexpr uint64_t kMinuteNs = 60'000'000'000;

TEST(Tasks, come_in_the_order_of_each_thread) {
  constexpr int kThreads = 4;
  constexpr int kEach = 2000;
  Tasks tasks;
  std::array<int, kThreads> next{};
  std::array<std::thread, kThreads> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads[static_cast<size_t>(thread)] = std::thread([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        tasks.put([&next, thread, i] { EXPECT_EQ(next[static_cast<size_t>(thread)]++, i); });
      }
    });
  }
  for (int n = 0; n < kThreads * kEach;) {
    tasks.wait(kMinuteNs);  // would not come back if a put() were missed
    tasks.take([&n](const Tasks::Task& task) {
      task();
      ++n;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(tasks.is_empty());
  tasks.take([](const Tasks::Task&) { ADD_FAILURE() << "all were taken"; });
}

TEST(Tasks, a_wait_ends_when_woken_before_or_when_its_time_is_over) {
  Tasks tasks;
  tasks.wake();
  const uint64_t begin_ns = base::now_ns();
  tasks.wait(kMinuteNs);
  EXPECT_LT(base::now_ns() - begin_ns, kMinuteNs);
  tasks.wait(1'000'000);
  EXPECT_TRUE(tasks.is_empty());
}

TEST(Tasks, what_was_not_taken_is_dropped) {
  const auto kept = std::make_shared<int>();
  {
    Tasks tasks;
    tasks.put([kept] { ADD_FAILURE(); });
    EXPECT_EQ(kept.use_count(), 2);
  }
  EXPECT_EQ(kept.use_count(), 1);
}

}  // namespace
}  // namespace ringbolt::circuit
