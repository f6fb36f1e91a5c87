#include "fabric/shape.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ringbolt::fabric {
namespace {

using ::testing::HasSubstr;

Shape best(uint32_t n_nodes, uint32_t n_ports) {
  auto shape = best_shape(n_nodes, n_ports);
  EXPECT_TRUE(shape) << (shape ? "" : shape.error().text());
  return shape.value_or(Shape{});
}

std::string refusal(const base::Parsed<Shape>& shape) { return shape ? "accepted" : shape.error().text(); }

TEST(Shape, uses_every_port_of_every_small_plan) {
  for (uint32_t n_nodes = 2; n_nodes <= 9; ++n_nodes) {
    for (uint32_t n_ports = n_nodes == 2 ? 1 : 2; n_ports <= 12; ++n_ports) {
      const Shape shape = best(n_nodes, n_ports);
      const Distances found = distances(shape.graph);
      EXPECT_TRUE(found.is_connected) << n_nodes << " " << n_ports;
      EXPECT_EQ(found.diameter == 1, n_ports >= n_nodes - 1) << n_nodes << " " << n_ports;
      const std::vector<uint32_t> ports = port_counts(shape.graph);
      EXPECT_EQ(std::ranges::max(ports), n_ports);
      EXPECT_EQ(std::ranges::count(ports, n_ports), n_nodes - n_nodes * n_ports % 2) << n_nodes << " " << n_ports;
    }
  }
}

TEST(Shape, spreads_rails_evenly) {
  const Shape shape = best(4, 7);  // 2 rails of each pair and one port more
  EXPECT_EQ(shape.name, "mesh with rails");
  EXPECT_EQ(shape.graph.cables.size(), 14U);
  const Graph merged = merge_rails(shape.graph);
  EXPECT_EQ(std::ranges::count(merged.cables, Fraction(3), &Cable::capacity), 2);
  EXPECT_EQ(std::ranges::count(merged.cables, Fraction(2), &Cable::capacity), 4);
  EXPECT_EQ(best(2, 3).graph.cables.size(), 3U);
}

TEST(Shape, is_found_beyond_the_table) {
  EXPECT_EQ(best(10, 3).name, "Petersen graph");
  EXPECT_EQ(best(20, 8).name, "searched");
  EXPECT_EQ(distances(best(20, 8).graph).diameter, 2U);
  EXPECT_EQ(best(65, 3).name, "random");
  EXPECT_EQ(best(250, 2).name, "ring");
}

TEST(Shape, says_what_would_do) {
  EXPECT_THAT(refusal(best_shape(1, 3)), HasSubstr("1 node: a plan has from 2 to 250 nodes"));
  EXPECT_THAT(refusal(best_shape(0, 3)), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal(best_shape(4'000'000'000, 3)), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal(best_shape(4, 0)), HasSubstr("0 ports: a node has from 1 to 250 ports"));
  EXPECT_THAT(refusal(best_shape(3, 1)), HasSubstr("give 2 ports for a ring"));
  EXPECT_THAT(refusal(named_shape("mesh", 5, 3)), HasSubstr("needs 4 ports on a node, but there are 3"));
  EXPECT_THAT(refusal(named_shape("petersen", 9, 3)), HasSubstr("has 10 nodes"));
  EXPECT_THAT(refusal(named_shape("hypercube", 12, 4)), HasSubstr("as 8 or 16"));
  EXPECT_THAT(refusal(named_shape("torus:3x3", 10, 4)), HasSubstr("torus:3x3 for 9"));
  EXPECT_THAT(refusal(named_shape("torus:99999999999x3", 10, 4)), HasSubstr("two or three sides"));
  EXPECT_THAT(refusal(named_shape("torus", 7, 4)), HasSubstr("two or three sides"));
  EXPECT_THAT(refusal(named_shape("circulant:0", 7, 4)), HasSubstr("offsets from 1 to 3"));
  EXPECT_THAT(refusal(named_shape("circulant:2", 8, 4)), HasSubstr("does not join all"));
  EXPECT_THAT(refusal(named_shape("circulant:", 8, 4)), HasSubstr("different offsets"));
  EXPECT_THAT(refusal(named_shape("ring:4", 4, 2)), HasSubstr("takes no numbers"));
  EXPECT_THAT(refusal(named_shape("blob", 4, 2)), HasSubstr("known are mesh, ring"));
  EXPECT_THAT(refusal(named_shape("", 4, 2)), HasSubstr("no shape"));
}

TEST(Shape, is_what_its_name_says) {
  const struct {
    const char* text;
    uint32_t n_nodes;
    uint32_t n_ports;
    size_t cables;
  } known[] = {{"mesh", 4, 3, 6},           {"ring", 6, 2, 6},        {"line", 6, 2, 5},
               {"star", 6, 5, 5},           {"torus", 12, 4, 24},     {"torus:4x3", 12, 4, 24},
               {"torus:2x2x2", 8, 3, 12},   {"hypercube", 16, 4, 32}, {"petersen", 10, 3, 15},
               {"circulant:1,4", 8, 3, 12}, {"random", 12, 3, 18},    {"line", 2, 1, 1}};
  for (const auto& one : known) {
    const auto shape = named_shape(one.text, one.n_nodes, one.n_ports);
    ASSERT_TRUE(shape) << one.text << refusal(shape);
    EXPECT_EQ(shape->graph.cables.size(), one.cables) << one.text;
  }
}

}  // namespace
}  // namespace ringbolt::fabric
