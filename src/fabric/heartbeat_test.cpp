#include "fabric/heartbeat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace ringbolt::fabric {
namespace {

TEST(Heartbeat, has_its_golden_bytes) {
  Heartbeat heartbeat{.rank = 1, .n_ranks = 2, .epoch = 0x01020304, .incarnation = 0x1122334455667788, .hosts = 3};
  heartbeat.counters[0] = 0xA1;
  heartbeat.counters[1] = 0xB2B1;
  std::array<std::byte, kMaxHeartbeatBytes> out{};
  ASSERT_EQ(emit(heartbeat, out), 48U);
  const std::array<uint8_t, 48> golden = {1,    2, 1, 0, 4, 3, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                                          3,    0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0,    0,    0,    0,
                                          0xA1, 0, 0, 0, 0, 0, 0, 0, 0xB1, 0xB2, 0,    0,    0,    0,    0,    0};
  EXPECT_TRUE(std::ranges::equal(std::span(out).first(48), std::as_bytes(std::span(golden))));
  EXPECT_EQ(parse_heartbeat(std::span(out).first(48)).value(), heartbeat);
  for (size_t length = 0; length < 60; ++length) {
    EXPECT_EQ(parse_heartbeat(std::span(out).first(length)).has_value(), length == 48);
  }
  for (const auto& [at, value] : std::map<size_t, int>{{0, 2}, {1, 0}, {1, 3}, {1, 65}, {2, 2}, {3, 1}, {24, 1}}) {
    auto bad = out;
    bad[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(parse_heartbeat(std::span(bad).first(48))) << at;
  }
}

TEST(Heartbeat, of_64_ranks_comes_back) {
  Heartbeat heartbeat{.rank = 63, .n_ranks = 64, .epoch = 9, .incarnation = 1, .hosts = ~uint64_t{0}};
  for (uint32_t rank = 0; rank < 64; ++rank) {
    heartbeat.counters[rank] = (uint64_t{rank} << 50) + rank;
  }
  std::array<std::byte, kMaxHeartbeatBytes> out{};
  EXPECT_EQ(emit(heartbeat, out), out.size());
  EXPECT_EQ(parse_heartbeat(out).value(), heartbeat);
}

}  // namespace
}  // namespace ringbolt::fabric
