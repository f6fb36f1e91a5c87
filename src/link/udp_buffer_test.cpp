#include "link/udp_buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

namespace ringbolt::link {
namespace {

TEST(UdpBufferPool, hands_the_last_returned_out_again) {
  const auto pool = UdpBufferPool::make();
  UdpBufferRef first = pool->take_large();
  const UdpBufferRef second = pool->take_large();
  EXPECT_NE(first.get(), second.get());
  EXPECT_EQ(first.get()->capacity(), UdpBufferPool::kLargeBytes);
  const UdpBuffer* const buffer = first.get();
  const UdpBufferRef copy = first;
  first.reset();
  EXPECT_FALSE(first.is_held());
  EXPECT_NE(pool->take_large().get(), buffer);  // the copy still holds it
  { const UdpBufferRef moved = copy; }
  UdpBufferRef last = copy;
  EXPECT_EQ(last.get(), buffer);
}

TEST(UdpBufferPool, is_bounded) {
  const auto pool = UdpBufferPool::make();
  std::vector<UdpBufferRef> held;
  while (held.size() < UdpBufferPool::kMaxLarge) {
    held.push_back(pool->take_large());
    ASSERT_TRUE(held.back().is_held());
  }
  EXPECT_FALSE(pool->take_large().is_held());
  EXPECT_TRUE(pool->take_small().is_held());
  UdpBuffer* const returned = held.back().get();
  held.pop_back();
  const UdpBufferRef again = pool->take_large();
  EXPECT_EQ(again.get(), returned);
}

TEST(UdpBufferPool, lives_as_long_as_a_reference) {
  auto pool = UdpBufferPool::make();
  UdpBufferRef held = pool->take_small();
  const std::weak_ptr<UdpBufferPool> watched = pool;
  pool.reset();
  EXPECT_FALSE(watched.expired());
  std::memset(held.get()->data(), 1, held.get()->capacity());
  held.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(UdpBufferPool, takes_buffers_back_from_any_thread) {
  const auto pool = UdpBufferPool::make();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 5000; ++i) {
        UdpBufferRef mine = pool->take_small();
        std::memset(mine.get()->data(), t, 64);
        const UdpBufferRef other = mine;
        mine.reset();
        for (size_t at = 0; at < 64; ++at) {
          ASSERT_EQ(other.get()->data()[at], static_cast<std::byte>(t));
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace ringbolt::link
