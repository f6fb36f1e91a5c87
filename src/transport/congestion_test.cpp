#include "transport/congestion.h"

#include <gtest/gtest.h>

namespace ringbolt::transport {
namespace {

constexpr uint64_t kRttNs = 50'000;

/// `rounds` round trips in which a whole window arrives.
uint64_t run(Congestion& congestion, uint64_t now_ns, int rounds, uint64_t rtt_ns) {
  for (int i = 0; i < rounds; ++i) {
    now_ns += rtt_ns;
    congestion.on_delivered(now_ns, congestion.window(), rtt_ns);
  }
  return now_ns;
}

TEST(Congestion, begins_small_and_grows_while_the_way_is_free) {
  Congestion congestion({});
  EXPECT_LE(congestion.window(), 64U);
  run(congestion, 0, 4, kRttNs);
  EXPECT_EQ(congestion.window(), 256U);
}

TEST(Congestion, gives_way_when_a_queue_fills_and_stops_at_the_least) {
  Congestion congestion({});
  uint64_t now_ns = run(congestion, 0, 4, kRttNs);
  now_ns = run(congestion, now_ns, 1, 3'000'000);
  EXPECT_LT(congestion.window(), 256U);
  now_ns = run(congestion, now_ns, 200, 50'000'000);
  EXPECT_EQ(congestion.window(), 96U);
  for (int i = 0; i < 20; ++i) {
    congestion.on_timeout(now_ns += 100'000'000);
  }
  EXPECT_EQ(congestion.window(), 4U);
}

TEST(Congestion, shrinks_once_a_round_trip) {
  Congestion congestion({});
  uint64_t now_ns = run(congestion, 0, 4, kRttNs);
  congestion.on_rewind(now_ns);
  EXPECT_EQ(congestion.window(), 128U);
  congestion.on_rewind(now_ns + 1);
  EXPECT_EQ(congestion.window(), 128U);
  congestion.on_rewind(now_ns + 2 * kRttNs);
  EXPECT_EQ(congestion.window(), 64U);
}

TEST(Congestion, bears_scattered_losses_but_not_heavy_ones) {
  Congestion congestion({});
  uint64_t now_ns = run(congestion, 0, 4, kRttNs);
  for (int i = 0; i < 100; ++i) {
    now_ns = run(congestion, now_ns, 1, kRttNs);
    congestion.on_loss(now_ns, 5);
  }
  EXPECT_EQ(congestion.window(), 256U);
  congestion.on_loss(now_ns, 100);
  EXPECT_LT(congestion.window(), 256U);
}

TEST(Congestion, takes_losses_with_delay_for_an_overflow) {
  Congestion congestion({});
  const uint64_t now_ns = run(congestion, run(congestion, 0, 4, kRttNs), 1, 1'500'000);
  const uint32_t before = congestion.window();
  congestion.on_loss(now_ns, 1);
  EXPECT_LT(congestion.window(), before);
}

TEST(Congestion, is_patient_before_it_knows_the_way) {
  Congestion congestion({});
  EXPECT_GE(congestion.patience_ns(), 1'000'000U);
  run(congestion, 0, 30, kRttNs);
  EXPECT_LT(congestion.patience_ns(), 1'000'000U);
  EXPECT_GE(congestion.patience_ns(), 2 * kRttNs);
}

}  // namespace
}  // namespace ringbolt::transport
