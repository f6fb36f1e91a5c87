#include "relayed/pairs.h"

#include <gtest/gtest.h>

#include "cluster/topology.h"

namespace ringbolt::tools::relayed {
namespace {

using Parts = std::vector<std::vector<uint32_t>>;
using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

constexpr auto kAllUp = [](uint32_t) { return true; };

TEST(RelayedPairs, are_those_without_a_cable) {
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("line:2"), kAllUp), Pairs{});
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("mesh:5"), kAllUp), Pairs{});
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("loop"), kAllUp), Pairs{});
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("ring:5"), kAllUp),
            (Pairs{{0, 2}, {0, 3}, {1, 3}, {1, 4}, {2, 4}}));
}

TEST(RelayedPairs, a_cut_cable_makes_one_unless_another_is_parallel) {
  const auto is_first_cut = [](uint32_t cable) { return cable != 0; };
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("ring:3"), is_first_cut), (Pairs{{0, 1}}));
  EXPECT_EQ(pairs_without_cable(*cluster::parse_topology("ring:2"), is_first_cut), Pairs{});
}

TEST(RelayedPairs, parts_are_what_cables_join) {
  const cluster::Cluster line = *cluster::parse_topology("line:4");
  EXPECT_EQ(parts_of(line, kAllUp), (Parts{{0, 1, 2, 3}}));
  EXPECT_EQ(parts_of(line, [](uint32_t cable) { return cable != 1; }), (Parts{{0, 1}, {2, 3}}));
  EXPECT_EQ(parts_of(line, [](uint32_t) { return false; }), (Parts{{0}, {1}, {2}, {3}}));
}

}  // namespace
}  // namespace ringbolt::tools::relayed
