#include "base/asymmetric_fence.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringbolt::base {
namespace {

// Dekker's pattern: of two sides that each store and then look, at least one sees the other's store.
TEST(AsymmetricFence, one_of_two_sides_sees_the_other) {
  const bool is_light = has_asymmetric_fences();
  constexpr uint32_t kRounds = 5000;
  std::atomic<uint32_t> frequent{0};
  std::atomic<uint32_t> seldom{0};
  std::atomic<uint32_t> frequent_saw{0};
  std::atomic<uint32_t> go{0};
  std::atomic<uint32_t> finished{0};
  std::thread thread([&] {
    for (uint32_t round = 1; round <= kRounds; ++round) {
      while (go.load() != round) {
        std::this_thread::yield();
      }
      frequent.store(round, std::memory_order_relaxed);
      light_fence(is_light);
      frequent_saw.store(seldom.load(std::memory_order_relaxed), std::memory_order_relaxed);
      finished.store(round);
    }
  });
  uint32_t missed = 0;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    go.store(round);
    seldom.store(round, std::memory_order_relaxed);
    heavy_fence();
    const uint32_t saw = frequent.load(std::memory_order_relaxed);
    while (finished.load() != round) {
      std::this_thread::yield();
    }
    missed += saw != round && frequent_saw.load() != round ? 1U : 0U;
  }
  thread.join();
  EXPECT_EQ(missed, 0U);
}

}  // namespace
}  // namespace ringbolt::base
