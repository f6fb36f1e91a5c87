// The rules of completion flags, one by one (docs/completion-flag.md), between the threads of one process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include <ringbolt/completion_flag.h>

namespace ringbolt {
namespace {

using namespace std::chrono_literals;
using Clock = CompletionFlag::Clock;

struct Words {
  alignas(128) std::array<std::byte, sizeof(CompletionFlag)> bytes{};

  uint64_t at(size_t offset) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + offset, sizeof word);
    return word;
  }
};

class CompletionFlagTest : public testing::Test {
 protected:
  Words words_;
  CompletionFlag& flag_ = *CompletionFlag::create(words_.bytes.data());
};

TEST_F(CompletionFlagTest, layout_is_that_of_the_page) {
  EXPECT_EQ(words_.at(0x18), 0x0000'0001'4643'4252U);
  EXPECT_EQ(flag_.signal(0x0123'4567'89ab'cdef), FlagSignal::done);
  EXPECT_EQ(words_.at(0x00), 0x0123'4567'89ab'cdefU);
  flag_.acknowledge(7);
  EXPECT_EQ(words_.at(0x80), 7U);
  flag_.abort({FlagReason::link_down, 0x0203, 0x0a0b0c0d});
  EXPECT_EQ(words_.at(0x08), 0x0a0b'0c0d'0203'0004U);
  EXPECT_EQ(words_.at(0x00) >> 62U, 1U);
  for (size_t offset = 0; offset < sizeof(CompletionFlag); offset += 8) {
    if (offset != 0x00 && offset != 0x08 && offset != 0x18 && offset != 0x80) {
      EXPECT_EQ(words_.at(offset), 0U) << offset;
    }
  }
}

TEST_F(CompletionFlagTest, opens_what_was_made_and_nothing_else) {
  EXPECT_EQ(CompletionFlag::open(words_.bytes.data()), &flag_);
  EXPECT_EQ(CompletionFlag::open(words_.bytes.data() + 8), nullptr);
  EXPECT_EQ(CompletionFlag::create(words_.bytes.data() + 64), nullptr);
  flag_.version = 2;
  EXPECT_EQ(CompletionFlag::open(words_.bytes.data()), nullptr);
  Words other;
  EXPECT_EQ(CompletionFlag::open(other.bytes.data()), nullptr);
}

TEST_F(CompletionFlagTest, numbers_only_rise_and_stay_below_poison) {
  const auto soon = Clock::now() + 1s;
  EXPECT_EQ(flag_.signal(0), FlagSignal::refused);
  EXPECT_EQ(flag_.signal(3), FlagSignal::done);
  EXPECT_EQ(flag_.signal(3), FlagSignal::refused);
  EXPECT_EQ(flag_.signal(2), FlagSignal::refused);
  for (uint64_t number : {uint64_t{0xffff'fffe}, uint64_t{0xffff'ffff}, uint64_t{0x1'0000'0000},
                          uint64_t{0x1'0000'0001}, CompletionFlag::kLast - 1, CompletionFlag::kLast}) {
    EXPECT_EQ(flag_.wait(number, Clock::now()), FlagStatus::timeout);
    EXPECT_EQ(flag_.signal(number), FlagSignal::done);
    EXPECT_EQ(flag_.wait(number, soon), FlagStatus::ready);
    EXPECT_EQ(flag_.wait(1, soon), FlagStatus::ready);
  }
  for (uint64_t number : {CompletionFlag::kPoison, CompletionFlag::kPoison + 1, UINT64_MAX}) {
    EXPECT_EQ(flag_.signal(number), FlagSignal::refused);
    EXPECT_EQ(flag_.wait(number, soon), FlagStatus::refused);
  }
  EXPECT_EQ(flag_.wait(0, soon), FlagStatus::refused);
}

TEST_F(CompletionFlagTest, an_infinite_deadline_is_refused_even_of_what_is_ready) {
  ASSERT_EQ(flag_.signal(1), FlagSignal::done);
  EXPECT_EQ(flag_.wait(1, Clock::time_point::max()), FlagStatus::refused);
  EXPECT_EQ(flag_.wait(1, Clock::time_point::max() - 24h), FlagStatus::refused);
}

TEST_F(CompletionFlagTest, deadlines_are_kept) {
  for (const auto limit : {5ms, 50ms, 500ms}) {
    const auto begin = Clock::now();
    EXPECT_EQ(flag_.wait(1, begin + limit), FlagStatus::timeout);
    const auto took = Clock::now() - begin;
    EXPECT_GE(took, limit);
    EXPECT_LE(took, limit + std::max<Clock::duration>(limit / 10, 20ms));
  }
  EXPECT_EQ(flag_.explain(1),
            "completion flag: waited for 1, and it is at 0: its signaller is stopped, slow or gone; look there");
}

TEST_F(CompletionFlagTest, first_abort_gives_the_reason_and_poison_wins_over_ready) {
  ASSERT_EQ(flag_.signal(5), FlagSignal::done);
  flag_.abort({FlagReason::verbs_error, 2, 77});
  flag_.abort({FlagReason::user, 1, 78});
  EXPECT_EQ(flag_.wait(5, Clock::now() + 1s), FlagStatus::aborted);
  EXPECT_EQ(flag_.aborted().reason, FlagReason::verbs_error);
  EXPECT_EQ(flag_.signal(6), FlagSignal::aborted);
  EXPECT_EQ(flag_.wait(4, Clock::now() + 1s), FlagStatus::aborted);
  EXPECT_EQ(flag_.explain(6),
            "completion flag: waited for 6, and it is poisoned: a verbs call failed at rank 2, operation 77");
}

TEST_F(CompletionFlagTest, a_peer_that_is_not_alive_is_named_to_all) {
  std::atomic<bool> is_alive{true};
  FlagStatus other{};
  std::thread waiter([&] { other = flag_.wait(9, Clock::now() + 20s); });
  std::thread end([&] {
    std::this_thread::sleep_for(5ms);
    is_alive = false;
  });
  EXPECT_EQ(flag_.wait(
                9, Clock::now() + 20s, [&] { return is_alive.load(); }, 3),
            FlagStatus::peer_error);
  waiter.join();
  end.join();
  EXPECT_EQ(other, FlagStatus::peer_error);
  EXPECT_EQ(flag_.explain(9),
            "completion flag: waited for 9, and it is poisoned: no sign of life from rank 3, operation 9");
}

TEST_F(CompletionFlagTest, a_device_that_gave_up_is_passed_on) {
  Words words;
  CompletionFlag& flag = *CompletionFlag::create(words.bytes.data(), kFlagSignalledByDevice | kFlagPayloadByDma);
  __atomic_store_n(&flag.dev_error, 0x0000'0008'0001'0006U, __ATOMIC_RELEASE);
  EXPECT_EQ(flag.wait(8, Clock::now() + 20s), FlagStatus::aborted);
  EXPECT_EQ(flag.aborted().reason, FlagReason::device_fault);
  EXPECT_EQ(flag.aborted().rank, 1);
  EXPECT_EQ(flag.aborted().operation, 8U);
}

TEST_F(CompletionFlagTest, a_device_rings_nobody_and_is_seen_all_the_same) {
  Words words;
  CompletionFlag& flag = *CompletionFlag::create(words.bytes.data(), kFlagSignalledByDevice | kFlagReadByDevice);
  FlagStatus how{};
  std::thread waiter([&] { how = flag.wait(1, Clock::now() + 20s); });
  std::this_thread::sleep_for(3ms);
  __atomic_store_n(&flag.seq, uint64_t{1}, __ATOMIC_RELEASE);
  waiter.join();
  EXPECT_EQ(how, FlagStatus::ready);
}

/// `n` threads that wait for 1, `ready_in` before `act` is called; how each ended, and how long after.
struct Ended {
  FlagStatus how{};
  Clock::duration after{};
};

template <class Act>
std::vector<Ended> wait_by_many(CompletionFlag& flag, size_t n, Clock::duration ready_in, Act act) {
  std::vector<Ended> all(n);
  std::vector<std::thread> threads;
  std::atomic<Clock::time_point> acted{Clock::time_point::max()};
  for (Ended& one : all) {
    threads.emplace_back([&] {
      one.how = flag.wait(1, Clock::now() + 20s);
      one.after = Clock::now() - acted.load();
    });
  }
  std::this_thread::sleep_for(ready_in);
  acted = Clock::now();
  act();
  for (std::thread& thread : threads) {
    thread.join();
  }
  return all;
}

TEST(CompletionFlagWaiters, eight_hear_of_an_abort_wherever_they_are) {
  for (const Clock::duration waited : {Clock::duration(20us), Clock::duration(300us), Clock::duration(30ms)}) {
    Words words;
    CompletionFlag& flag = *CompletionFlag::create(words.bytes.data());
    for (const Ended& one : wait_by_many(flag, 8, waited, [&] { flag.abort({FlagReason::user, 4, 5}); })) {
      EXPECT_EQ(one.how, FlagStatus::aborted);
      EXPECT_LE(one.after, 50ms);
    }
    EXPECT_EQ(flag.aborted().rank, 4);
  }
}

TEST(CompletionFlagWaiters, more_than_there_are_processors_sleep) {
  const size_t n = 4 * std::thread::hardware_concurrency();
  Words words;
  CompletionFlag& flag = *CompletionFlag::create(words.bytes.data());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const Ended& one : wait_by_many(flag, n, 500ms, [&] { flag.signal(1); })) {
    EXPECT_EQ(one.how, FlagStatus::ready);
  }
  getrusage(RUSAGE_SELF, &after);
  const auto us = [](const rusage& usage) {
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000 + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
  };
  // Each wakes once a millisecond, and spun at first: some per cent of a processor, where spinning all takes n of them.
  EXPECT_LT(us(after) - us(before), 150'000);
}

}  // namespace
}  // namespace ringbolt
