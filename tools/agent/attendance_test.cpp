#include "agent/attendance.h"

#include <gtest/gtest.h>

#include "fabric/relaying.h"

namespace ringbolt::tools::agent {
namespace {

using Nodes = std::vector<uint32_t>;

constexpr uint32_t kMostOfLine = fabric::kMostHopsOfGroup + 1;

fabric::Graph line_of(uint32_t n_nodes) {
  fabric::Graph line{n_nodes, {}};
  for (uint32_t node = 1; node < n_nodes; ++node) {
    fabric::join(line, node - 1, node);
  }
  return line;
}

Nodes first(uint32_t n_nodes) {
  Nodes nodes;
  for (uint32_t node = 0; node < n_nodes; ++node) {
    nodes.push_back(node);
  }
  return nodes;
}

TEST(Attendance, joins_those_who_come_by_way_of_those_who_come) {
  fabric::Graph cabling = line_of(5);
  const auto joined = [&](const std::vector<bool>& comes, uint32_t node) { return joined_with(cabling, comes, node); };
  EXPECT_EQ(joined({true, true, true, true, true}, 3), first(5));
  EXPECT_EQ(joined({true, true, false, true, true}, 1), (Nodes{0, 1}));
  EXPECT_EQ(joined({true, true, false, true, true}, 4), (Nodes{3, 4}));
  EXPECT_EQ(joined({true, true, false, true, true}, 2), first(5));  // who asks comes
  EXPECT_EQ(joined({false, false, false, false, false}, 0), Nodes{0});
  fabric::join(cabling, 0, 4);
  EXPECT_EQ(joined({true, true, false, true, true}, 1), (Nodes{0, 1, 3, 4}));
}

TEST(Attendance, nodes_that_no_cable_joins_are_no_group) {
  EXPECT_FALSE(can_be_group(line_of(3), {0, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {1, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {0, 1, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {2}));
}

TEST(Attendance, nodes_that_are_too_far_apart_are_no_group) {
  EXPECT_TRUE(can_be_group(line_of(kMostOfLine), first(kMostOfLine)));
  fabric::Graph ring = line_of(kMostOfLine + 1);
  EXPECT_FALSE(can_be_group(ring, first(kMostOfLine + 1)));  // with a cable that is cut
  fabric::join(ring, 0, kMostOfLine);
  EXPECT_TRUE(can_be_group(ring, first(kMostOfLine + 1)));
}

}  // namespace
}  // namespace ringbolt::tools::agent
