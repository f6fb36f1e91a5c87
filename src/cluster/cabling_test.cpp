#include "cluster/cabling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/address_plan.h"
#include "cluster/topology.h"

namespace ringbolt::cluster {
namespace {

using ::testing::HasSubstr;

Interface interface(const std::string& name, std::initializer_list<const char*> addresses) {
  Interface one{name, true};
  for (const char* text : addresses) {
    one.addresses.push_back(IpAddress::parse(text).value());
  }
  return one;
}

Interface uplink(const char* address) {
  Interface one = interface("eth0", {address});
  one.has_default_route = true;
  return one;
}

std::vector<HostInterfaces> ring_of_three() {
  return {
      {"root@mac1.local",
       {uplink("192.168.1.1/24"), interface("en2", {"10.0.0.1/30", "fe80::1/64"}), interface("en3", {"10.0.2.2/30"})}},
      {"mac2", {uplink("192.168.1.2/24"), interface("en2", {"10.0.1.1/30"}), interface("en3", {"10.0.0.2/30"})}},
      {"10.9.9.9", {uplink("192.168.1.3/24"), interface("en-2", {"10.0.2.1/30"}), interface("en3", {"10.0.1.2/30"})}}};
}

std::string refusal(const Parsed<Cluster>& cluster) { return cluster ? "accepted" : cluster.error().text(); }

TEST(Cabling, finds_cables_by_their_subnets) {
  const Parsed<Cluster> cluster = find_cables(ring_of_three());
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->nodes[0].name, "mac1");
  EXPECT_EQ(cluster->nodes[0].host, "root@mac1.local");
  EXPECT_EQ(cluster->nodes[2].name, "n2") << "an address is no name";
  ASSERT_EQ(cluster->cables.size(), 3U);
  EXPECT_EQ(end_text(*cluster, cluster->cables[0].a), "mac1:rdma_en2");
  EXPECT_EQ(end_text(*cluster, cluster->cables[0].b), "mac2:rdma_en3");
  EXPECT_EQ(end_text(*cluster, cluster->cables[1].b), "n2:rdma_en_2") << "a dash is none of a device's letters";
}

TEST(Cabling, passes_over_what_three_share) {
  std::vector<HostInterfaces> hosts = ring_of_three();
  for (uint32_t i = 0; i < 3; ++i) {
    hosts[i].interfaces.push_back({"lan", true, false, {IpAddress::from_ipv4(0xac100001U + i, 24)}});
  }
  const Parsed<Cluster> cluster = find_cables(hosts);
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->cables.size(), 3U);
}

TEST(Cabling, refuses_a_machine_without_a_cable) {
  std::vector<HostInterfaces> hosts = ring_of_three();
  hosts.push_back({"lonely", {uplink("192.168.1.4/24"), interface("en5", {"10.5.0.1/30"})}});
  EXPECT_THAT(refusal(find_cables(hosts)), HasSubstr("found no cable of lonely (it has eth0 192.168.1.4/24 (default"));
}

TEST(Cabling, takes_addresses_from_what_hosts_have) {
  const std::vector<HostInterfaces> hosts = ring_of_three();
  const Parsed<Cluster> cluster = with_found_addresses(*find_cables(hosts), hosts);
  ASSERT_TRUE(cluster) << cluster.error().text();
  EXPECT_EQ(cluster->kind, Kind::hosts);
  EXPECT_EQ(cluster->nodes[0].ports[0].addresses.size(), 2U);
  EXPECT_EQ(address_across(*cluster, 0, cluster->cables[0].a), "10.0.0.2");
  EXPECT_EQ(address_across(*cluster, 0, cluster->cables[0].b), "10.0.0.1");
  EXPECT_EQ(node_spec(*cluster, 0).ports[0].netdev, "en2");
}

TEST(Cabling, says_which_interface_is_missing) {
  std::vector<HostInterfaces> hosts = ring_of_three();
  Cluster cluster = *find_cables(hosts);
  cluster.nodes[1].ports[0].netdev = "en9";
  EXPECT_THAT(refusal(with_found_addresses(cluster, hosts)), HasSubstr("mac2 has no interface en9 for mac2:rdma_en"));
  cluster.nodes[1].ports[0].netdev.clear();
  EXPECT_THAT(refusal(with_found_addresses(cluster, hosts)), HasSubstr("names no interface"));
  cluster = *find_cables(hosts);
  hosts[0].interfaces[1].addresses = {IpAddress::parse("172.16.0.1/24").value()};
  EXPECT_THAT(refusal(with_found_addresses(cluster, hosts)), HasSubstr("have no subnet in common"));
  hosts[0].interfaces[1].addresses.clear();
  EXPECT_THAT(refusal(with_found_addresses(cluster, hosts)), HasSubstr("has no address"));
}

TEST(Cabling, reaches_across_by_ipv4_then_ipv6_then_link_local) {
  Cluster cluster = *parse_topology("line:2");
  plan_namespaces(cluster);
  const CableEnd from = cluster.cables[0].a;
  std::vector<IpAddress>& there = cluster.nodes[1].ports[0].addresses;
  EXPECT_EQ(address_across(cluster, 0, from), "10.77.0.2");
  std::erase_if(there, [](const IpAddress& one) { return one.is_ipv4(); });
  EXPECT_EQ(address_across(cluster, 0, from), "fd77::2");
  std::erase_if(there, [](const IpAddress& one) { return !one.is_link_local(); });
  EXPECT_EQ(address_across(cluster, 0, from), there[0].text() + "%en2");
  there.clear();
  EXPECT_EQ(address_across(cluster, 0, from), "");
}

TEST(Cabling, names_nodes_after_hosts_once) {
  const auto names = [](std::initializer_list<const char*> hosts) {
    std::vector<HostInterfaces> found;
    for (uint32_t i = 0; const char* host : hosts) {
      found.push_back({host, {interface("a", {}), interface("b", {})}});
      found.back().interfaces[0].addresses = {IpAddress::from_ipv4(0x0a000002U + 4 * i, 30)};
      found.back().interfaces[1].addresses = {IpAddress::from_ipv4(0x0a000005U + 4 * i, 30)};
      ++i;
    }
    found.back().interfaces[1].addresses = {IpAddress::from_ipv4(0x0a000001U, 30)};
    std::string text;
    const Cluster cluster = find_cables(found).value();
    for (const Node& node : cluster.nodes) {
      text += node.name + " ";
    }
    return text;
  };
  EXPECT_EQ(names({"a.x", "b@a.y", "ssh://u@c:22"}), "a n1 c ");
  EXPECT_EQ(names({"fe80::1", "[fd00::1]", "local", "7"}), "n0 n1 n2 n3 ");
  // A number that a host has for its name.
  EXPECT_EQ(names({"n1", "fe80::1"}), "n1 n2 ");
  EXPECT_EQ(names({"fe80::1", "n0"}), "n1 n0 ");
}

TEST(Cabling, gives_interfaces_with_like_names_devices_of_their_own) {
  const std::vector<HostInterfaces> hosts = {
      {"a", {interface("en.2", {"10.0.0.1/30"}), interface("en_2", {"10.0.0.5/30"})}},
      {"b", {interface("en.2", {"10.0.0.2/30"}), interface("en_2", {"10.0.0.6/30"})}}};
  const Parsed<Cluster> cluster = find_cables(hosts);
  ASSERT_TRUE(cluster) << cluster.error().text();
  for (const Node& node : cluster->nodes) {
    ASSERT_EQ(node.ports.size(), 2U);
    EXPECT_EQ(node.ports[0].name, "rdma_en_2");
    EXPECT_EQ(node.ports[1].name, "rdma_en_2_2");
  }
}

TEST(Cabling, takes_no_options_for_hosts) {
  for (const char* good : {"a", "root@a.b", "ssh://u@h:22", "10.0.0.1", "fe80::1%en2", "[fd00::1]"}) {
    EXPECT_TRUE(is_host(good)) << good;
  }
  for (const char* bad : {"", "-oProxyCommand=x", "a b", "a;b", "$(x)", "a'b", "a\nb"}) {
    EXPECT_FALSE(is_host(bad)) << bad;
  }
}

}  // namespace
}  // namespace ringbolt::cluster
