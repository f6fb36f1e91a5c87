#include "circuit/receive_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "circuit/arrivals.h"
#include "circuit/line_copy.h"

namespace ringbolt::circuit {
namespace {

Receive& post(ReceiveQueue& queue, std::vector<int32_t> tags) {
  Receive& receive = queue.next();
  for (size_t i = 0; i < tags.size(); ++i) {
    receive.parts[i].tag = tags[i];
  }
  queue.post(static_cast<uint32_t>(tags.size()));
  return receive;
}

TEST(ReceiveQueue, one_buffer_takes_any_tag_in_order) {
  ReceiveQueue queue;
  Receive& first = post(queue, {5});
  Receive& second = post(queue, {6});
  EXPECT_EQ(queue.match(6).receive, &first);
  EXPECT_EQ(queue.match(5).receive, &second);
  EXPECT_EQ(queue.match(5).part, nullptr);
}

TEST(ReceiveQueue, buffers_of_a_group_are_told_apart_by_tags) {
  ReceiveQueue queue;
  Receive& first = post(queue, {1, 2, 1});
  Receive& second = post(queue, {1, 2});
  EXPECT_EQ(queue.match(2).part, &first.parts[1]);
  EXPECT_EQ(queue.match(2).part, &second.parts[1]) << "the first group has none left of that tag";
  EXPECT_EQ(queue.match(1).part, &first.parts[0]);
  EXPECT_EQ(queue.match(3).part, nullptr);
  EXPECT_EQ(queue.match(1).part, &first.parts[2]);
  EXPECT_EQ(queue.match(1).part, &second.parts[0]);
}

TEST(ReceiveQueue, receives_are_done_in_order) {
  ReceiveQueue queue;
  Receive& first = post(queue, {1});
  Receive& second = post(queue, {1});
  const auto a = queue.match(1);
  const auto b = queue.match(1);
  ReceiveQueue::finish(b);
  EXPECT_FALSE(queue.is_done(second)) << "the first is not";
  ReceiveQueue::finish(a);
  ASSERT_TRUE(queue.is_done(first));
  queue.pop();
  EXPECT_TRUE(queue.is_done(second));
  queue.pop();
  EXPECT_TRUE(queue.is_empty());
}

TEST(ReceiveQueue, holds_so_many) {
  ReceiveQueue queue;
  for (uint32_t i = 0; i < kMostReceives; ++i) {
    EXPECT_FALSE(queue.is_full());
    post(queue, {0});
  }
  EXPECT_TRUE(queue.is_full());
  ReceiveQueue::finish(queue.match(0));
  queue.pop();
  EXPECT_FALSE(queue.is_full());
}

TEST(Arrivals, know_what_has_come) {
  Arrivals arrivals;
  EXPECT_FALSE(arrivals.is_known(0));
  arrivals.note(1);
  EXPECT_TRUE(arrivals.is_known(1));
  EXPECT_FALSE(arrivals.is_known(0));
  EXPECT_EQ(arrivals.first_missing(), 0U);
  arrivals.note(0);
  EXPECT_EQ(arrivals.first_missing(), 2U);
  EXPECT_TRUE(arrivals.is_known(0)) << "long ago";
  EXPECT_TRUE(arrivals.is_known(2 + Arrivals::kWindow)) << "from a sender that can't be";
}

TEST(Arrivals, go_on_over_the_wrap) {
  Arrivals arrivals;
  for (uint32_t i = 0; i < 3 * Arrivals::kWindow; ++i) {
    const uint32_t sequence = i ^ 1U;  // neighbours swapped
    ASSERT_FALSE(arrivals.is_known(sequence));
    arrivals.note(sequence);
  }
  EXPECT_EQ(arrivals.first_missing(), 3 * Arrivals::kWindow);
}

TEST(LineCopy, copies_all_lengths_at_all_alignments) {
  std::vector<std::byte> from(700);
  for (size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<std::byte>(i * 7 + i / 251);
  }
  for (size_t at = 0; at < 9; ++at) {
    for (size_t length = 0; length < 400; ++length) {
      std::vector<std::byte> to(700, std::byte{0xee});
      copy_lines(to.data() + at, from.data() + 3, length);
      ASSERT_EQ(std::memcmp(to.data() + at, from.data() + 3, length), 0) << at << " " << length;
      ASSERT_EQ(to[at + length], std::byte{0xee});
      ASSERT_TRUE(at == 0 || to[at - 1] == std::byte{0xee});
    }
  }
}

/// Somebody watches the flags of lines while they are written: each then finds its line whole.
TEST(LineCopy, a_flag_is_never_seen_before_its_line) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the watcher, a GPU in earnest, reads what is being written: a race by design";
#endif
  constexpr size_t kLines = 64;
  constexpr size_t kWords = kLineBytes / sizeof(uint64_t);
  alignas(64) static std::array<uint64_t, kLines * kWords> target{};
  std::atomic<bool> is_over = false;
  std::atomic<uint64_t> n_broken = 0;
  std::thread watcher([&] {
    while (!is_over) {
      for (size_t line = 0; line < kLines; ++line) {
        uint64_t* const words = target.data() + line * kWords;
        const uint64_t flag = std::atomic_ref<uint64_t>(words[kWords - 1]).load(std::memory_order_acquire);
        // A newer round may write meanwhile: its values are greater.
        const uint64_t first = __atomic_load_n(words, __ATOMIC_RELAXED);
        n_broken += first < flag ? 1 : 0;
      }
    }
  });
  std::array<uint64_t, kLines * kWords> source{};
  for (uint64_t round = 1; round < 20'000; ++round) {
    source.fill(round);
    copy_lines(target.data(), source.data(), sizeof source);
  }
  is_over = true;
  watcher.join();
  EXPECT_EQ(n_broken, 0U);
}

}  // namespace
}  // namespace ringbolt::circuit
