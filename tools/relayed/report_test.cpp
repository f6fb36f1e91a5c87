#include <gtest/gtest.h>

#include "cluster/topology.h"
#include "relayed/measure.h"

namespace ringbolt::tools::relayed {
namespace {

TEST(RelayedReport, comes_back_as_it_was) {
  const Report good{0, 3, {1, 2}, {"", false, true, 2.5, 4.5, 10, 50, 1U << 20U, 123456}};
  Report bad{3, 0, {2, 1}, {}};
  bad.figures.problem = "rank 3: no \"way\" \\ to rank 0";
  EXPECT_EQ(parse("n0 says something\n" + emit(good) + "\n" + emit(bad)), (std::vector<Report>{good, bad}));
}

TEST(RelayedReport, what_is_none_is_passed_over) {
  const std::string whole = emit({0, 2, {1}, {"", false, true, 1, 2, 3, 4, 5}});
  EXPECT_TRUE(parse("").empty());
  EXPECT_TRUE(parse(whole.substr(1)).empty());
  EXPECT_TRUE(parse(whole.substr(0, whole.size() - 3)).empty());
  EXPECT_TRUE(parse("ringbolt-relayed {}\nringbolt-relayed [1\nringbolt-relayed {\"from\":-1}\n").empty());
  EXPECT_EQ(parse(whole.substr(0, whole.size() - 1)).size(), 1U);  // without its line end
}

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
