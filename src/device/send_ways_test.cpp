#include "device/send_ways.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>

namespace ringbolt::device {
namespace {

using Way = SendWays::Way;

TEST(SendWays, has_a_class_for_the_lengths_between_two_powers_of_two) {
  EXPECT_EQ(SendWays::class_of(16 << 10), 0U);
  EXPECT_EQ(SendWays::class_of((32 << 10) - 1), 0U);
  EXPECT_EQ(SendWays::class_of(32 << 10), 1U);
  EXPECT_EQ(SendWays::class_of(64 << 10), 2U);
  EXPECT_EQ(SendWays::class_of(512 << 10), 5U);
  EXPECT_EQ(SendWays::class_of(1 << 20), 6U);
  EXPECT_EQ(SendWays::class_of(1U << 31U), 6U);
}

/// Sends messages the ways that are wished for, which take as long as `cost_ns` says. How many went each way.
std::map<Way, int> send(SendWays& ways, int messages, uint32_t bytes, const std::function<uint64_t(Way)>& cost_ns) {
  std::map<Way, int> sent;
  for (int i = 0; i < messages; ++i) {
    const bool is_pulled = (ways.wishes() >> SendWays::class_of(bytes) & 1U) != 0;
    const Way way = is_pulled ? Way::pulled : Way::chunks;
    ways.note(way, bytes, cost_ns(way));
    ++sent[way];
  }
  return sent;
}

TEST(SendWays, takes_chunks_at_first) {
  SendWays ways;
  EXPECT_EQ(ways.wishes(), 0U);
}

TEST(SendWays, takes_the_faster_way_but_for_a_few) {
  for (const Way faster : {Way::chunks, Way::pulled}) {
    SendWays ways;
    auto sent = send(ways, 3000, 1 << 20, [&](Way way) { return way == faster ? 80'000 : 100'000; });
    EXPECT_GT(sent[faster], 2900);
    EXPECT_GT(sent[faster == Way::chunks ? Way::pulled : Way::chunks], 20);
  }
}

TEST(SendWays, is_not_misled_by_what_disturbs_messages) {
  SendWays ways;
  int number = 0;
  auto sent = send(ways, 3000, 64 << 10, [&](Way way) {
    const uint64_t undisturbed = way == Way::pulled ? 8000 : 9000;
    return ++number % 3 != 0 ? undisturbed : undisturbed + 50'000 + static_cast<uint64_t>(number % 7) * 10'000;
  });
  EXPECT_GT(sent[Way::pulled], 2800);
}

TEST(SendWays, finds_that_the_other_way_has_become_faster) {
  SendWays ways;
  send(ways, 1000, 1 << 20, [](Way way) { return way == Way::pulled ? 90'000 : 100'000; });
  auto sent = send(ways, 3000, 1 << 20, [](Way way) { return way == Way::pulled ? 120'000 : 100'000; });
  EXPECT_GT(sent[Way::chunks], 2600);
}

TEST(SendWays, decides_for_each_class_alone) {
  SendWays ways;
  const auto shorter_chunks = [](uint32_t bytes) {
    return [bytes](Way way) -> uint64_t { return (way == Way::pulled) == (bytes >= 256 << 10) ? 10'000 : 20'000; };
  };
  for (int round = 0; round < 40; ++round) {
    for (const uint32_t bytes : {16U << 10U, 100U << 10U, 300U << 10U, 8U << 20U}) {
      send(ways, 1, bytes, shorter_chunks(bytes));
    }
  }
  EXPECT_EQ(ways.wishes(), 1U << SendWays::class_of(300 << 10) | 1U << SendWays::class_of(8 << 20));
}

TEST(SendWays, takes_any_time_for_granted) {
  SendWays ways;
  for (const uint64_t took : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{1} << 40U}) {
    send(ways, 100, SendWays::kLeastBytes, [took](Way) { return took; });
    send(ways, 100, UINT32_MAX, [took](Way) { return took; });
  }
}

}  // namespace
}  // namespace ringbolt::device
