#include "cluster/address_plan.h"

#include <gtest/gtest.h>

#include <unordered_set>

#include "cluster/cluster_file.h"
#include "cluster/topology.h"

namespace ringbolt::cluster {
namespace {

Cluster planned(std::string_view topology) {
  Parsed<Cluster> cluster = parse_topology(topology);
  EXPECT_TRUE(cluster);
  plan_namespaces(*cluster);
  return *cluster;
}

std::string all_addresses(const Port& port) {
  std::string text;
  for (const IpAddress& address : port.addresses) {
    text += (text.empty() ? "" : " ") + address.text_with_prefix();
  }
  return text;
}

TEST(AddressPlan, gives_every_cable_a_subnet) {
  const Cluster cluster = planned("line:3");
  EXPECT_EQ(cluster.kind, Kind::netns);
  EXPECT_EQ(cluster.nodes[1].ports[0].netdev, "en2");
  EXPECT_EQ(cluster.nodes[1].ports[1].netdev, "en3");
  const std::string left = all_addresses(cluster.nodes[1].ports[0]);
  EXPECT_EQ(left.substr(left.find(' ')), " 10.77.0.2/24 fd77::2/64");
  const std::string right = all_addresses(cluster.nodes[1].ports[1]);
  EXPECT_EQ(right.substr(right.find(' ')), " 10.77.1.1/24 fd77:0:0:1::1/64");
}

TEST(AddressPlan, makes_the_link_local_address_of_the_guid) {
  const Cluster cluster = planned("line:2");
  const NodeSpec spec = node_spec(cluster, 0);
  const IpAddress& first = cluster.nodes[0].ports[0].addresses[0];
  EXPECT_TRUE(first.is_link_local());
  uint64_t low = 0;
  for (size_t i = 8; i < 16; ++i) {
    low = (low << 8U) | first.bytes[i];
  }
  EXPECT_EQ(low, spec.ports[0].guid ^ 0x0200'0000'0000'0000U);
  EXPECT_EQ(spec.ports[0].netdev, "en2");
  EXPECT_EQ(spec.ports[0].ipv4, 0x0a4d0001U);
  EXPECT_EQ(spec.ports[0].peer_ipv4, 0x0a4d0002U);
}

TEST(AddressPlan, has_no_address_twice_in_the_largest_mesh) {
  const Cluster cluster = planned("mesh:250");
  ASSERT_LE(cluster.cables.size(), kMaxPlannedCables);
  std::unordered_set<std::string> seen;
  size_t count = 0;
  for (const Node& node : cluster.nodes) {
    for (const Port& port : node.ports) {
      for (const IpAddress& address : port.addresses) {
        seen.insert(address.text());
        ++count;
      }
    }
  }
  EXPECT_EQ(seen.size(), count);
  EXPECT_EQ(count, cluster.cables.size() * 2 * 3);
  EXPECT_EQ(management_conflict(cluster), "");
}

TEST(AddressPlan, keeps_what_the_file_says) {
  Parsed<Cluster> cluster = parse_cluster(R"({"ringbolt": 1, "nodes": [
      {"name": "a", "ports": [{"name": "x", "netdev": "en3", "addresses": ["192.168.1.1/30"]}, "y",
                              {"name": "spare", "netdev": "en9"}]},
      {"name": "b", "ports": ["x", "y"]}],
      "cables": [{"between": ["a:x", "b:x"]}, {"between": ["a:y", "b:y"]}]})");
  ASSERT_TRUE(cluster) << cluster.error().text();
  plan_namespaces(*cluster);
  const std::vector<Port>& ports = cluster->nodes[0].ports;
  EXPECT_EQ(ports[0].netdev, "en3");
  EXPECT_EQ(ports[0].addresses[1].text_with_prefix(), "192.168.1.1/30");
  EXPECT_EQ(ports[0].addresses.size(), 2U);
  EXPECT_NE(ports[1].netdev, "en3") << "the name is taken";
  EXPECT_TRUE(ports[2].netdev.empty()) << "a port without a cable has no interface";
}

TEST(AddressPlan, is_the_same_when_made_again) {
  Cluster cluster = planned("ring:4");
  const Cluster once = cluster;
  plan_namespaces(cluster);
  EXPECT_EQ(cluster, once);
  const Parsed<Cluster> read = parse_cluster(emit_cluster(once));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, once);
}

TEST(AddressPlan, plugs_a_loopback_into_one_interface) {
  const Cluster cluster = planned("loop");
  EXPECT_EQ(cluster.nodes[0].ports[0].addresses.size(), 3U);
  EXPECT_EQ(node_spec(cluster, 0).ports[0].peer_ipv4, node_spec(cluster, 0).ports[0].ipv4);
}

TEST(AddressPlan, gives_every_node_an_address_beside_the_cables) {
  EXPECT_EQ(management_address(0).text_with_prefix(), "10.76.0.1/24");
  EXPECT_EQ(management_address(kMaxNodes - 1).text_with_prefix(), "10.76.0.250/24");
  EXPECT_EQ(management_namespace("ring4"), "rb-ring4-management");
  EXPECT_EQ(management_conflict(planned("mesh:3")), "");
}

TEST(AddressPlan, sees_what_stands_in_the_way_of_the_management_network) {
  Cluster cluster = planned("line:2");
  cluster.nodes[1].ports[0].netdev = "mgmt0";
  EXPECT_EQ(management_conflict(cluster), "n1:rdma_en2 is carried by mgmt0, the name of the management network's interface");
  cluster.nodes[1].ports[0].netdev = "mgmt1";
  cluster.nodes[0].ports[0].addresses.push_back(*IpAddress::parse("10.76.0.77/30"));
  EXPECT_EQ(management_conflict(cluster),
            "n0:rdma_en2 has the address 10.76.0.77/30, which lies in the management network's 10.76.0.0/24");
  cluster.nodes[0].ports[0].addresses.back() = *IpAddress::parse("10.76.1.1/24");
  EXPECT_EQ(management_conflict(cluster), "");
}

TEST(AddressPlan, names_namespaces_by_number) { EXPECT_EQ(namespace_name("ring4", 3), "rb-ring4-3"); }

}  // namespace
}  // namespace ringbolt::cluster
