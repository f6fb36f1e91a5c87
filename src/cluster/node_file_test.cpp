#include "cluster/node_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cluster/limits.h"
#include "cluster/model.h"
#include "cluster/topology.h"

namespace ringbolt::cluster {
namespace {

using ::testing::HasSubstr;

// Written by hand from docs/cluster.md, "node files".
constexpr std::string_view kGolden =
    "ringbolt-node 1\n"
    "cluster ring4 cables 4\n"
    "node 0 name n0\n"
    "port rdma_en2 guid 0x02524200000000a1 addr 127.77.0.2 cable 0 speed_gbps 40 "
    "peer-node 1 peer-port rdma_en3 peer-guid 0x02524200000001a2 peer-addr 127.77.1.3\n"
    "port rdma_en3 guid 0x02524200000000a2 addr 127.77.0.3 cable 3 speed_gbps 80 "
    "peer-node 3 peer-port rdma_en2 peer-guid 0x02524200000003a1 peer-addr 127.77.3.2\n";

NodeSpec golden_spec() {
  NodeSpec spec{"ring4", 4, 0, "n0", {}};
  spec.ports.push_back(
      {"rdma_en2", 0x02524200000000a1, 0x7f4d0002, 0, 40, 1, "rdma_en3", 0x02524200000001a2, 0x7f4d0103});
  spec.ports.push_back(
      {"rdma_en3", 0x02524200000000a2, 0x7f4d0003, 3, 80, 3, "rdma_en2", 0x02524200000003a1, 0x7f4d0302});
  return spec;
}

std::string golden_with(std::string_view from, std::string_view to) {
  std::string text(kGolden);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(std::string_view text) {
  const Parsed<NodeSpec> spec = parse_node(text);
  return spec ? "accepted" : spec.error().text();
}

TEST(NodeFile, parses_the_golden_text) {
  const Parsed<NodeSpec> spec = parse_node(kGolden);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(*spec, golden_spec());
}

TEST(NodeFile, emits_the_golden_text) { EXPECT_EQ(emit_node(golden_spec()), kGolden); }

TEST(NodeFile, the_overlay_is_a_line_of_its_own) {
  NodeSpec spec = golden_spec();
  spec.n_overlay_nodes = 4;
  const std::string text = std::string(kGolden) + "overlay nodes 4\n";
  EXPECT_EQ(emit_node(spec), text);
  const Parsed<NodeSpec> parsed = parse_node(text);
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(*parsed, spec);
  EXPECT_THAT(refusal(text + "overlay nodes 4\n"), HasSubstr("named twice"));
  EXPECT_THAT(refusal(std::string(kGolden) + "overlay nodes 0\n"), HasSubstr("number of nodes"));
  EXPECT_THAT(refusal(std::string(kGolden) + "overlay nodes 4 more\n"), HasSubstr("unexpected"));
}

TEST(NodeFile, accepts_a_node_without_ports) {
  const Parsed<NodeSpec> spec = parse_node(kGolden.substr(0, kGolden.find("port ")));
  ASSERT_TRUE(spec);
  EXPECT_TRUE(spec->ports.empty());
}

TEST(NodeFile, names_line_and_problem) {
  EXPECT_EQ(refusal(""), "ends after 0 of its 3 first lines");
  EXPECT_THAT(refusal(golden_with("ringbolt-node 1", "ringbolt-node 2")), HasSubstr("line 1: the format's version"));
  EXPECT_THAT(refusal(golden_with("ring4", "../etc")), HasSubstr("line 2: the cluster's name"));
  EXPECT_THAT(refusal(golden_with("cables 4", "cables 0")), HasSubstr("line 2: the number of cables"));
  EXPECT_THAT(refusal(golden_with("cables 4", "cables 99999999999999999999")), HasSubstr("line 2"));
  EXPECT_THAT(refusal(golden_with("node 0", "node 250")), HasSubstr("line 3: the node is not a number"));
  EXPECT_THAT(refusal(golden_with("name n0", "name 17")), HasSubstr("line 3: the node's name"));
  EXPECT_THAT(refusal(golden_with("rdma_en2 guid", "../../x guid")), HasSubstr("line 4: the device"));
  EXPECT_THAT(refusal(golden_with("0x02524200000000a1", "0x0")), HasSubstr("line 4: the GUID"));
  EXPECT_THAT(refusal(golden_with("0x02524200000000a1", "0x-2524200000000a1")), HasSubstr("line 4: the GUID"));
  EXPECT_THAT(refusal(golden_with("127.77.0.2", "10.77.0.2")), HasSubstr("line 4: address 10.77.0.2 is not in 127"));
  EXPECT_THAT(refusal(golden_with("127.77.0.2", "127.77.2")), HasSubstr("line 4: the address"));
  EXPECT_THAT(refusal(golden_with("127.77.0.2", "127.77.0.256")), HasSubstr("line 4: the address"));
  EXPECT_THAT(refusal(golden_with("cable 0", "cable 4")), HasSubstr("line 4: the cable is not a number from 0 to 3"));
  EXPECT_THAT(refusal(golden_with("speed_gbps 40", "speed_gbps -1")), HasSubstr("line 4: the speed"));
  EXPECT_THAT(refusal(golden_with("peer-node 1", "peer-node  1")), HasSubstr("line 4: the peer's node"));
  EXPECT_THAT(refusal(golden_with("127.77.1.3\n", "127.77.1.3 and\n")),
              HasSubstr("line 4: expected the word \"netdev\""));
  EXPECT_THAT(refusal(golden_with("port rdma_en2", "port\nrdma_en2")), HasSubstr("line 4: the device is missing"));
}

TEST(NodeFile, refuses_clashes_between_ports) {
  EXPECT_THAT(refusal(golden_with("\nport rdma_en3", "\nport rdma_en2")),
              HasSubstr("line 5: device rdma_en2 is named"));
  EXPECT_THAT(refusal(golden_with("0x02524200000000a2", "0x02524200000000a1")), HasSubstr("line 5: GUID"));
  EXPECT_THAT(refusal(golden_with("addr 127.77.0.3", "addr 127.77.0.2")), HasSubstr("line 5: address"));
  EXPECT_THAT(refusal(golden_with("cable 3", "cable 0")), HasSubstr("line 5: cable 0 is plugged"));
}

TEST(NodeFile, refuses_one_port_too_many) {
  std::string text = "ringbolt-node 1\ncluster c cables 31125\nnode 0 name n0\n";
  const auto port_line = [](uint32_t i) {
    return "port d" + std::to_string(i) + " guid 0x00000000000" + std::to_string(10000 + i) + " addr 127.1." +
           std::to_string(i / 256) + "." + std::to_string(i % 256) + " cable " + std::to_string(i) +
           " speed_gbps 1 peer-node 1 peer-port d peer-guid 0x0000000000000001 peer-addr 127.2.2.2\n";
  };
  for (uint32_t i = 0; i < kMaxPortsPerNode; ++i) {
    text += port_line(i);
  }
  EXPECT_EQ(refusal(text), "accepted");
  EXPECT_THAT(refusal(text + port_line(kMaxPortsPerNode)), HasSubstr("more than 250 ports"));
}

TEST(NodeFile, refuses_a_text_that_is_too_long) {
  EXPECT_THAT(refusal(std::string(kMaxNodeFileBytes + 1, '\n')), HasSubstr("more than a node file's"));
}

TEST(NodeFile, survives_any_change_of_bytes) {
  EXPECT_TRUE(
      rc::check("changing, cutting and doubling bytes never crashes; what is accepted can be written and read", [] {
        std::string text(kGolden);
        const auto edits = *rc::gen::inRange(1, 5);
        for (int i = 0; i < edits; ++i) {
          const auto at = *rc::gen::inRange<size_t>(0, text.size());
          const auto length = *rc::gen::inRange<size_t>(0, 40);
          const auto with =
              *rc::gen::element<std::string>("", " ", "\n", "0", "9999999999", "-", std::string(1, '\0'), "\xff");
          text.replace(at, length, with);
          RC_PRE(!text.empty());
        }
        const Parsed<NodeSpec> spec = parse_node(text);
        if (spec) {
          RC_ASSERT((parse_node(emit_node(*spec)) == spec));
        } else {
          RC_ASSERT(!spec.error().problem.empty());
        }
      }));
}

TEST(NodeFile, every_node_of_every_topology_round_trips) {
  for (const char* topology :
       {"mesh:9", "ring:2", "ring:250", "line:5", "star:250", "torus:3x4", "hypercube:4", "petersen", "loop"}) {
    const Parsed<Cluster> cluster = parse_topology(topology);
    ASSERT_TRUE(cluster) << topology;
    for (uint32_t node = 0; node < cluster->nodes.size(); ++node) {
      const NodeSpec spec = node_spec(*cluster, node);
      const Parsed<NodeSpec> again = parse_node(emit_node(spec));
      ASSERT_TRUE(again) << topology << ": " << again.error().text();
      ASSERT_EQ(*again, spec);
    }
  }
}

// Written by hand from docs/cluster.md, "node files".
constexpr std::string_view kOnInterfaces =
    "ringbolt-node 1\n"
    "cluster pair cables 2\n"
    "node 0 name n0\n"
    "port rdma_en2 guid 0x02524200000000a1 addr 10.77.0.1 cable 0 speed_gbps 40 "
    "peer-node 1 peer-port rdma_en2 peer-guid 0x02524200000001a1 peer-addr 10.77.0.2 netdev en2\n"
    "port rdma_en3 guid 0x02524200000000a2 addr 0.0.0.0 cable 1 speed_gbps 40 "
    "peer-node 1 peer-port rdma_en3 peer-guid 0x02524200000001a2 peer-addr 0.0.0.0 netdev en3\n";

std::string refusal_on_interfaces(std::string_view from, std::string_view to) {
  std::string text(kOnInterfaces);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal(text.replace(at, from.size(), to));
}

TEST(NodeFile, names_the_interfaces_of_ports) {
  const Parsed<NodeSpec> spec = parse_node(kOnInterfaces);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_TRUE(spec->has_netdevs());
  EXPECT_EQ(spec->ports[0].netdev, "en2");
  EXPECT_EQ(spec->ports[0].ipv4, 0x0a4d0001U);
  EXPECT_EQ(spec->ports[1].ipv4, 0U) << "an interface need not have an IPv4 address";
  EXPECT_EQ(emit_node(*spec), kOnInterfaces);
  EXPECT_FALSE(golden_spec().has_netdevs());
}

TEST(NodeFile, refuses_interfaces_that_do_not_fit) {
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", " netdev en2"), HasSubstr("interface en2 of rdma_en2 and rdma_en3"));
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", ""), HasSubstr("line 5: address 0.0.0.0 is not in 127.0.0.0/8"));
  EXPECT_THAT(refusal_on_interfaces("addr 10.77.0.1", "addr 127.77.0.2"),
              HasSubstr("line 4: address 127.77.0.2 of an"));
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", " netdev"), HasSubstr("the interface is missing"));
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", " netdev lo"), HasSubstr("line 5: the interface is not"));
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", " netdev a/b"), HasSubstr("line 5: the interface is not"));
  EXPECT_THAT(refusal_on_interfaces(" netdev en3", " netdev en3 x"), HasSubstr("unexpected words"));
  EXPECT_THAT(refusal_on_interfaces("peer-addr 10.77.0.2 netdev en2\n", "peer-addr 10.77.0.2 device en2\n"),
              HasSubstr("expected the word \"netdev\""));
  EXPECT_THAT(refusal(std::string(kGolden) +
                      "port rdma_en4 guid 0x02524200000000a3 addr 10.0.0.1 cable 2 speed_gbps 40 peer-node 1 "
                      "peer-port x peer-guid 0x02524200000001a7 peer-addr 10.0.0.2 netdev en4\n"),
              HasSubstr("only one has an interface"));
}

// Written by hand from docs/cluster.md, "node files".
constexpr std::string_view kOnStreams =
    "ringbolt-node 1\n"
    "cluster s cables 2\n"
    "node 0 name a\n"
    "port tb guid 0x02524200000000a1 addr 169.254.1.1 cable 0 speed_gbps 40 "
    "peer-node 1 peer-port tb peer-guid 0x02524200000001a1 peer-addr 169.254.2.2 stream /dev/tbstream0+/dev/tbstream1\n"
    "port tc guid 0x02524200000000a2 addr 169.254.3.3 cable 1 speed_gbps 40 "
    "peer-node 1 peer-port tc peer-guid 0x02524200000001a2 peer-addr 169.254.4.4 stream tcp-listen::7801\n";

std::string refusal_on_streams(std::string_view from, std::string_view to) {
  std::string text(kOnStreams);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return refusal(text.replace(at, from.size(), to));
}

TEST(NodeFile, names_the_streams_of_ports) {
  const Parsed<NodeSpec> spec = parse_node(kOnStreams);
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_FALSE(spec->has_netdevs());
  EXPECT_EQ(spec->ports[0].stream, "/dev/tbstream0+/dev/tbstream1");
  EXPECT_EQ(spec->ports[1].stream, "tcp-listen::7801");
  EXPECT_EQ(emit_node(*spec), kOnStreams);
}

TEST(NodeFile, refuses_streams_that_do_not_fit) {
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", " stream /dev/tbstream0+/dev/tbstream1"),
              HasSubstr("tb and tc are not both at streams of their own"));
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", " netdev en3"), HasSubstr("tb and tc are not both at streams"));
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", ""), HasSubstr("line 5: address 169.254.3.3 is not in"));
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", " stream a;b"), HasSubstr("line 5: the stream is not 1 to 255"));
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", " stream a b"), HasSubstr("line 5: unexpected words"));
  EXPECT_THAT(refusal_on_streams(" stream tcp-listen::7801", " stream " + std::string(256, 'x')),
              HasSubstr("line 5: the stream is not"));
  EXPECT_THAT(refusal_on_streams("addr 169.254.3.3", "addr 127.0.0.1"), HasSubstr("is in 127.0.0.0/8"));
}

}  // namespace
}  // namespace ringbolt::cluster
