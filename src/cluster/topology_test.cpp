#include "cluster/topology.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cluster/limits.h"
#include "cluster/names.h"

namespace ringbolt::cluster {
namespace {

using ::testing::HasSubstr;

Cluster built(std::string_view text) {
  Parsed<Cluster> cluster = parse_topology(text);
  EXPECT_TRUE(cluster) << text << ": " << (cluster ? "" : cluster.error().text());
  return cluster ? std::move(*cluster) : Cluster{};
}

std::string refusal(std::string_view text) {
  const Parsed<Cluster> cluster = parse_topology(text);
  return cluster ? "accepted" : cluster.error().text();
}

/// Hops from node 0 to every node that can be reached.
std::map<uint32_t, uint32_t> hops_from(const Cluster& cluster, uint32_t start) {
  std::map<uint32_t, uint32_t> hops{{start, 0}};
  for (size_t round = 0; round < cluster.nodes.size(); ++round) {
    for (const Cable& cable : cluster.cables) {
      for (const auto& [from, to] : {std::pair(cable.a.node, cable.b.node), std::pair(cable.b.node, cable.a.node)}) {
        if (hops.count(from) != 0 && (hops.count(to) == 0 || hops[to] > hops[from] + 1)) {
          hops[to] = hops[from] + 1;
        }
      }
    }
  }
  return hops;
}

uint32_t diameter(const Cluster& cluster) {
  uint32_t most = 0;
  for (uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    for (const auto& [other, hops] : hops_from(cluster, node)) {
      most = std::max(most, hops);
    }
  }
  return most;
}

TEST(Topology, ring_leads_forward_on_en2_and_back_on_en3) {
  const Cluster ring = built("ring:4");
  EXPECT_EQ(ring.name, "ring4");
  ASSERT_EQ(ring.cables.size(), 4U);
  EXPECT_EQ(end_text(ring, ring.cables[0].a), "n0:rdma_en2");
  EXPECT_EQ(end_text(ring, ring.cables[0].b), "n1:rdma_en3");
  EXPECT_EQ(end_text(ring, ring.cables[3].a), "n3:rdma_en2");
  EXPECT_EQ(end_text(ring, ring.cables[3].b), "n0:rdma_en3");
}

TEST(Topology, has_the_known_number_of_cables_ports_and_hops) {
  const struct {
    const char* text;
    size_t nodes;
    size_t cables;
    size_t most_ports;
    uint32_t diameter;
  } known[] = {
      {"mesh:2", 2, 1, 1, 1},        {"mesh:5", 5, 10, 4, 1},    {"ring:2", 2, 2, 2, 1},    {"ring:3", 3, 3, 2, 1},
      {"ring:7", 7, 7, 2, 3},        {"line:2", 2, 1, 1, 1},     {"line:5", 5, 4, 2, 4},    {"star:6", 6, 5, 5, 2},
      {"torus:2x2", 4, 4, 2, 2},     {"torus:3x3", 9, 18, 4, 2}, {"torus:2x3", 6, 9, 3, 2}, {"hypercube:1", 2, 1, 1, 1},
      {"hypercube:4", 16, 32, 4, 4}, {"petersen", 10, 15, 3, 2}, {"loop", 1, 1, 1, 0},
  };
  for (const auto& expected : known) {
    const Cluster cluster = built(expected.text);
    EXPECT_EQ(cluster.nodes.size(), expected.nodes) << expected.text;
    EXPECT_EQ(cluster.cables.size(), expected.cables) << expected.text;
    size_t most_ports = 0;
    for (const Node& node : cluster.nodes) {
      most_ports = std::max(most_ports, node.ports.size());
    }
    EXPECT_EQ(most_ports, expected.most_ports) << expected.text;
    EXPECT_EQ(hops_from(cluster, 0).size(), expected.nodes) << expected.text << " is not connected";
    EXPECT_EQ(diameter(cluster), expected.diameter) << expected.text;
    EXPECT_TRUE(is_cluster_name(cluster.name)) << cluster.name;
  }
}

TEST(Topology, says_what_it_wants) {
  EXPECT_THAT(refusal("cube:3"), HasSubstr("unknown topology; known are mesh:N, ring:N"));
  EXPECT_THAT(refusal(""), HasSubstr("unknown topology"));
  EXPECT_THAT(refusal("mesh"), HasSubstr("mesh:N needs a whole number from 2 to 250"));
  EXPECT_THAT(refusal("mesh:1"), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal("ring:251"), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal("ring:4294967298"), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal("ring:-4"), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal("ring:4 "), HasSubstr("from 2 to 250"));
  EXPECT_THAT(refusal("hypercube:8"), HasSubstr("from 1 to 7"));
  EXPECT_THAT(refusal("torus:3"), HasSubstr("as in torus:3x3"));
  EXPECT_THAT(refusal("torus:65536x65537"), HasSubstr("250 nodes at most"));
  EXPECT_THAT(refusal("petersen:3"), HasSubstr("takes no number"));
  EXPECT_THAT(refusal("loop:"), HasSubstr("takes no number"));
}

TEST(Topology, has_a_name_of_its_numbers_without_leading_zeros) {
  EXPECT_EQ(parse_topology("mesh:000000000000000000000000000000000000000004")->name, "mesh4");
  EXPECT_EQ(parse_topology("torus:03x0004")->name, "torus3x4");
  EXPECT_EQ(parse_topology("petersen")->name, "petersen");
}

TEST(Topology, every_port_has_one_cable) {
  EXPECT_TRUE(rc::check("in any topology that is accepted, every port has exactly one cable", [] {
    const auto kind = *rc::gen::element<std::string>("mesh:", "ring:", "line:", "star:", "hypercube:");
    const auto size = *rc::gen::inRange(0, 12);
    const Parsed<Cluster> cluster = parse_topology(kind + std::to_string(size));
    RC_PRE(cluster.has_value());
    std::set<std::pair<uint32_t, uint32_t>> plugged;
    for (const Cable& cable : cluster->cables) {
      RC_ASSERT(plugged.insert({cable.a.node, cable.a.port}).second);
      RC_ASSERT(plugged.insert({cable.b.node, cable.b.port}).second);
    }
    size_t ports = 0;
    for (const Node& node : cluster->nodes) {
      ports += node.ports.size();
    }
    RC_ASSERT(ports == plugged.size());
  }));
}

TEST(Topology, tells_a_topology_from_a_file_name) {
  EXPECT_TRUE(names_topology("ring:4"));
  EXPECT_TRUE(names_topology("ring:x"));
  EXPECT_TRUE(names_topology("petersen"));
  EXPECT_FALSE(names_topology("ring.json"));
  EXPECT_FALSE(names_topology("./ring:4"));
}

}  // namespace
}  // namespace ringbolt::cluster
