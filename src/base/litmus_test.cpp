// Two threads, two words, many rounds: what the protocols of this device rest on, tried on this machine.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/asymmetric_fence.h"
#include "base/clock.h"
#include "base/cpu_pause.h"

namespace ringbolt::base {
namespace {

constexpr uint32_t kMostRounds = 1'000'000;
/// Where other programs have the second core, a round takes microseconds: as many as fit into this then.
constexpr uint64_t kMostNs = 1'500'000'000;
constexpr uint32_t kWords = 512;  ///< pairs of words, used in turn: what both sides look at lies in the other's cache
constexpr uint32_t kNoRound = UINT32_MAX;

/// Brings two threads to the same point at nearly the same time, a million times.
class StartingLine {
 public:
  /// Both call it with 1, 2, 3...; false: the other one has stopped.
  bool meet(uint32_t side, uint32_t round) {
    at_[side].round.store(round, std::memory_order_seq_cst);
    for (uint32_t turns = 1;; ++turns) {
      const uint32_t other = at_[1 - side].round.load(std::memory_order_seq_cst);
      if (other >= round) {
        return other != kNoRound;
      }
      if (turns % 512 == 0) {
        std::this_thread::yield();
      }
    }
  }
  void stop(uint32_t side) { at_[side].round.store(kNoRound, std::memory_order_seq_cst); }

 private:
  struct Side {
    alignas(128) std::atomic<uint32_t> round{0};
  };
  std::array<Side, 2> at_;
};

struct Words {
  alignas(128) std::atomic<uint32_t> first{0};
  alignas(128) std::atomic<uint32_t> second{0};
};

/// 0 to 300 ns: who met last goes first, and by so much the other one hears of it later.
void wait_a_little(uint32_t random) {
  for (uint32_t turns = random >> 22U; turns > 0; --turns) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

/// Plays the two sides against each other: each is called with the words and the round's number, and returns what it
/// saw. How many rounds is_bad() calls bad, with what both saw; `rounds` says how many there were.
template <class First, class Second, class IsBad>
uint32_t play(First first, Second second, IsBad is_bad, uint32_t& rounds) {
  const auto words = std::make_unique<Words[]>(kWords);
  const auto seen = std::make_unique<std::atomic<uint32_t>[]>(kMostRounds + 1);
  StartingLine line;
  std::thread other([&] {
    for (uint32_t round = 1; line.meet(1, round); ++round) {
      wait_a_little(round * 0x9e3779b1U);
      seen[round].store(second(words[round % kWords], round), std::memory_order_relaxed);
    }
  });
  const auto saw = std::make_unique<uint32_t[]>(kMostRounds + 1);
  const uint64_t end_ns = now_ns() + kMostNs;
  rounds = 0;
  for (uint32_t round = 1; round <= kMostRounds && (round % 256 != 0 || now_ns() < end_ns); ++round) {
    line.meet(0, round);
    wait_a_little(round * 0x85ebca6bU);
    saw[round] = first(words[round % kWords], round);
    rounds = round;
  }
  line.stop(0);
  other.join();
  // The last one does not count: the other side may have found the line closed before it began.
  uint32_t bad = 0;
  for (uint32_t round = 1; round < rounds; ++round) {
    bad += is_bad(saw[round], seen[round].load(std::memory_order_relaxed), round) ? 1U : 0U;
  }
  return bad;
}

/// Each side stores its word, does what its fence says, and looks at the other's word. How often neither saw the other.
template <class FirstFence, class SecondFence>
uint32_t store_buffering(FirstFence first_fence, SecondFence second_fence) {
  uint32_t rounds = 0;
  const uint32_t missed = play(
      [&](Words& words, uint32_t round) {
        words.first.store(round, std::memory_order_relaxed);
        first_fence();
        return words.second.load(std::memory_order_relaxed);
      },
      [&](Words& words, uint32_t round) {
        words.second.store(round, std::memory_order_relaxed);
        second_fence();
        return words.first.load(std::memory_order_relaxed);
      },
      [](uint32_t one, uint32_t other, uint32_t round) { return one < round && other < round; }, rounds);
  std::printf("%u of %u rounds missed each other\n", missed, rounds);
  return missed;
}

void full_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
void compiler_fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

TEST(Litmus, full_fences_let_one_of_two_see_the_other) {
  EXPECT_EQ(store_buffering(full_fence, full_fence), 0U);
}

// The control of the tests beside it: what they say of fences is worth something where this shows.
TEST(Litmus, without_fences_both_miss_the_other) {
  if (store_buffering(compiler_fence, compiler_fence) == 0) {
    GTEST_SKIP() << "skip: on this machine no round showed a store that was passed by a load (one core, a "
                    "busy one, or emulation)";
  }
}

TEST(Litmus, one_full_fence_alone_is_not_enough) {
  if (store_buffering(full_fence, compiler_fence) == 0) {
    GTEST_SKIP() << "skip: on this machine no round showed a store that was passed by a load (one core, a "
                    "busy one, or emulation)";
  }
}

// The light side has but the compiler's fence here: the kernel's interrupt stands in for the processor's.
TEST(Litmus, a_heavy_fence_makes_up_for_a_light_one) {
  if (!has_asymmetric_fences()) {
    GTEST_SKIP() << "skip: no membarrier(2) here (an old kernel, seccomp, emulation, thread sanitizer)";
  }
  EXPECT_EQ(store_buffering(heavy_fence, [] { light_fence(true); }), 0U);
}

TEST(Litmus, light_fences_are_full_where_the_kernel_has_no_heavy_ones) {
  EXPECT_EQ(store_buffering(full_fence, [] { light_fence(false); }), 0U);
}

/// A value, and then the word that says that it is there. Rounds in which the word was seen and the value was not.
template <class Between, class After>
uint32_t message_passing(Between between_stores, After between_loads) {
  uint32_t rounds = 0;
  const uint32_t stale = play(
      [&](Words& words, uint32_t round) {
        const bool is_there = words.second.load(std::memory_order_relaxed) >= round;
        between_loads();
        return is_there && words.first.load(std::memory_order_relaxed) < round ? 1U : 0U;
      },
      [&](Words& words, uint32_t round) {
        words.first.store(round, std::memory_order_relaxed);
        between_stores();
        words.second.store(round, std::memory_order_relaxed);
        return 0U;
      },
      [](uint32_t is_stale, uint32_t, uint32_t) { return is_stale != 0; }, rounds);
  std::printf("%u of %u rounds found the word without its value\n", stale, rounds);
  return stale;
}

// What region_table.h and remote_access.h rest on: fences beside relaxed words.
TEST(Litmus, release_and_acquire_fences_pass_a_message) {
  EXPECT_EQ(message_passing(
                [] { std::atomic_thread_fence(std::memory_order_release); },
                [] { std::atomic_thread_fence(std::memory_order_acquire); }),
            0U);
}

}  // namespace
}  // namespace ringbolt::base
