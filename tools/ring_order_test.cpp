#include "ring_order.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace ringbolt::tools {
namespace {

bootstrap::JacclDevices devices_of(size_t n_ranks, std::initializer_list<std::pair<size_t, size_t>> cables) {
  bootstrap::JacclDevices devices;
  devices.cells.assign(n_ranks, std::vector<std::vector<std::string>>(n_ranks));
  for (const auto& [a, b] : cables) {
    devices.cells[a][b].push_back("d" + std::to_string(b));
    devices.cells[b][a].push_back("d" + std::to_string(a));
  }
  return devices;
}

using Ranks = std::vector<uint32_t>;

TEST(RingOrder, finds_the_order_of_the_cables) {
  EXPECT_EQ(ring_order(devices_of(4, {{0, 2}, {2, 1}, {1, 3}, {3, 0}})).ranks, (Ranks{0, 2, 1, 3}));
  EXPECT_EQ(ring_order(devices_of(3, {{0, 1}, {1, 2}, {2, 0}})).ranks.size(), 3U);
}

TEST(RingOrder, prefers_as_many_rails_everywhere) {
  // Both 0-1-2-3 and 0-2-1-3 are rings; the second has two rails at each side.
  const RingOrder order =
      ring_order(devices_of(4, {{0, 1}, {2, 3}, {0, 2}, {0, 2}, {2, 1}, {2, 1}, {1, 3}, {1, 3}, {3, 0}, {3, 0}}));
  EXPECT_EQ(order.ranks, (Ranks{0, 2, 1, 3}));
  EXPECT_EQ(order.n_rails, 2U);
  EXPECT_TRUE(order.is_even);
}

TEST(RingOrder, takes_uneven_rails_where_there_is_nothing_else) {
  const RingOrder order = ring_order(devices_of(3, {{0, 1}, {0, 1}, {1, 2}, {2, 0}}));
  EXPECT_EQ(order.ranks.size(), 3U);
  EXPECT_EQ(order.n_rails, 1U);
  EXPECT_FALSE(order.is_even);
}

TEST(RingOrder, says_that_there_is_none) {
  for (const auto& devices :
       {devices_of(3, {{0, 1}, {1, 2}}), devices_of(6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}})}) {
    const RingOrder order = ring_order(devices);
    EXPECT_TRUE(order.ranks.empty());
    EXPECT_TRUE(order.is_certain);
  }
}

TEST(RingOrder, is_found_among_many_ranks_and_given_up_in_bounded_time) {
  bootstrap::JacclDevices ring = devices_of(250, {});
  for (size_t i = 0; i < 250; ++i) {  // 0, 7, 14, ...: 7 and 250 share no divisor
    ring.cells[i][(i + 7) % 250] = ring.cells[(i + 7) % 250][i] = {"d"};
  }
  EXPECT_EQ(ring_order(ring).ranks.size(), 250U);
  // Two halves of many ways each, which one rank joins: no cycle, and no quick way to see it.
  bootstrap::JacclDevices halves = devices_of(61, {});
  for (size_t i = 0; i < 61; ++i) {
    for (size_t j = 0; j < 61; ++j) {
      if (i != j && (i / 30 == j / 30 || i == 60 || j == 60)) {
        halves.cells[i][j] = {"d"};
      }
    }
  }
  EXPECT_TRUE(ring_order(halves).ranks.empty());
  EXPECT_FALSE(ring_order(halves).is_certain);
}

}  // namespace
}  // namespace ringbolt::tools
