#include "base/adaptive_mutex.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace ringbolt::base {
namespace {

constexpr uint64_t kPatienceNs = 20'000'000'000;

/// 'R' of a thread that runs, 'S' of one that sleeps.
char state_of(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::ostringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  const size_t at = text.rfind(") ");
  return at == std::string::npos ? '?' : text[at + 2];
}

bool falls_asleep(pid_t thread) {
  const uint64_t deadline = now_ns() + kPatienceNs;
  while (state_of(thread) != 'S' && now_ns() < deadline) {
    sched_yield();
  }
  return state_of(thread) == 'S';
}

TEST(AdaptiveMutex, is_tried_without_waiting) {
  AdaptiveMutex mutex;
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(AdaptiveMutex, lets_one_in_at_a_time) {
  constexpr int kThreads = 4;
  constexpr uint64_t kEach = 50'000;
  AdaptiveMutex mutex;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (uint64_t n = 0; n < kEach; ++n) {
        const LockGuard guard(mutex);
        ++count;
        if (n % 1024 == 0) {
          sched_yield();  // off the processor with the lock held: others sleep, and must be woken
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, kThreads * kEach);
}

TEST(AdaptiveMutex, waiters_sleep_and_all_get_it_in_the_end) {
  constexpr size_t kWaiters = 3;
  AdaptiveMutex mutex;
  std::vector<std::atomic<pid_t>> ids(kWaiters);
  std::vector<std::thread> threads;
  uint64_t count = 0;
  mutex.lock();
  for (size_t i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&, i] {
      ids[i].store(gettid());
      errno = EDOM;
      const LockGuard guard(mutex);
      EXPECT_EQ(errno, EDOM);
      ++count;
    });
  }
  for (const std::atomic<pid_t>& id : ids) {
    while (id.load() == 0) {
      sched_yield();
    }
    EXPECT_TRUE(falls_asleep(id.load()));
  }
  mutex.unlock();
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(count, kWaiters);
}

}  // namespace
}  // namespace ringbolt::base
