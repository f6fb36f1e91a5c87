#include "circuit/paths.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "bringup/gid_test_support.h"

namespace ringbolt::circuit {
namespace {

bringup::PortCard card(const std::string& device, const std::string& address, uint32_t rate_mbps = 40'000) {
  bringup::PortCard made{
      .device = device, .rate_mbps = rate_mbps, .gid_index = 1, .gids = {{1, bringup::test::gid(address)}}};
  made.capabilities.has_rc = true;
  return made;
}

/// Node `node` with ports of these addresses, all active.
NodePorts node(NodeId number, const std::vector<std::string>& addresses) {
  NodePorts ports;
  ports.node = number;
  for (size_t i = 0; i < addresses.size(); ++i) {
    ports.cards.push_back(card("en" + std::to_string(i), addresses[i]));
    ports.is_active.push_back(true);
  }
  return ports;
}

/// Nodes 1 to n in a ring, each cable a subnet of its own; node k's member is 10 k.
struct Ring {
  explicit Ring(NodeId n) {
    for (NodeId i = 1; i <= n; ++i) {
      const auto cable = [&](NodeId from) { return "10.77." + std::to_string(from); };
      nodes.push_back(node(i, {cable(i) + ".1", cable(i == 1 ? n : i - 1) + ".2"}));
      members[i] = {10 * i};
    }
  }
  std::vector<PlannedPath> paths(NodeId from, NodeId to) const {
    return plan_paths(links_between(nodes), nodes, members, {from, 10 * from}, {to, 10 * to});
  }
  std::vector<NodePorts> nodes;
  MembersOfNode members;
};

std::vector<MemberId> members_of(const PlannedPath& planned) {
  std::vector<MemberId> members;
  for (const Hop& hop : planned.path) {
    members.push_back(hop.member);
  }
  return members;
}

TEST(Links, are_found_by_subnets) {
  const std::vector<Link> links = links_between(Ring(4).nodes);
  ASSERT_EQ(links.size(), 4U);
  EXPECT_EQ(links[0], (Link{1, 2, {0, 1}, {1, 1}, 40'000, true}));
  EXPECT_EQ(links[1], (Link{1, 4, {1, 1}, {0, 1}, 40'000, true}));
}

TEST(Links, at_a_switch_join_everybody_once) {
  std::vector<NodePorts> nodes;
  for (NodeId i = 1; i <= 3; ++i) {
    nodes.push_back(node(i, {"192.168.5." + std::to_string(i), "192.168.5." + std::to_string(100 + i)}));
  }
  const std::vector<Link> links = links_between(nodes);
  EXPECT_EQ(links.size(), 6U) << "two ports each, three pairs";
  std::set<std::pair<uint16_t, NodeId>> used;
  for (const Link& link : links) {
    if (link.a == 1) {
      EXPECT_TRUE(used.insert({link.at_a.port, link.b}).second);
    }
  }
}

TEST(Links, of_addresses_that_say_nothing_are_found_from_both_ends) {
  std::vector<NodePorts> nodes = {node(1, {"127.77.0.2", "127.77.0.3"}), node(2, {"127.77.1.2", "127.77.1.3"})};
  EXPECT_EQ(candidates_for(nodes, 1).size(), 4U);
  nodes[0].found = {{0, 2, 1}};
  EXPECT_TRUE(links_between(nodes).empty()) << "one end alone";
  nodes[1].found = {{1, 1, 0}};
  const std::vector<Link> links = links_between(nodes);
  ASSERT_EQ(links.size(), 1U);
  EXPECT_EQ(links[0].at_a.port, 0);
  EXPECT_EQ(links[0].at_b.port, 1);
  nodes[1].found.push_back({7, 1, 9});  // of ports that there are not
  nodes[0].found.push_back({9, 2, 7});
  EXPECT_EQ(links_between(nodes).size(), 1U);
}

TEST(Links, need_a_type_of_queue_pair_that_both_ends_have) {
  Ring ring(3);
  bringup::Capabilities& one = ring.nodes[0].cards[0].capabilities;
  one.has_rc = false;
  EXPECT_EQ(links_between(ring.nodes).size(), 2U);
  one.has_uc = true;
  EXPECT_EQ(links_between(ring.nodes).size(), 2U) << "the other end has RC alone";
  for (NodePorts& node : ring.nodes) {
    for (bringup::PortCard& card : node.cards) {
      card.capabilities.has_uc = true;
    }
  }
  EXPECT_EQ(links_between(ring.nodes).size(), 3U);
}

TEST(Links, candidates_are_ports_whose_addresses_do_not_tell) { EXPECT_TRUE(candidates_for(Ring(4).nodes, 1).empty()); }

TEST(Paths, of_neighbours_are_all_their_cables) {
  Ring ring(2);  // two cables between the two
  const auto paths = ring.paths(1, 2);
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(members_of(paths[0]), (std::vector<MemberId>{10, 20}));
  EXPECT_NE(paths[0].path[0].exit.port, paths[1].path[0].exit.port);
  EXPECT_EQ(paths[0].rate_mbps, 40'000U);
}

TEST(Paths, across_a_ring_of_four_are_both_ways_round) {
  const auto paths = Ring(4).paths(1, 3);
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(members_of(paths[0]), (std::vector<MemberId>{10, 20, 30}));
  EXPECT_EQ(members_of(paths[1]), (std::vector<MemberId>{10, 40, 30}));
}

TEST(Paths, in_a_ring_of_five_take_the_shorter_way) {
  const auto paths = Ring(5).paths(1, 3);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(members_of(paths[0]), (std::vector<MemberId>{10, 20, 30}));
}

TEST(Paths, lead_round_a_cable_that_is_down) {
  Ring ring(4);
  ring.nodes[0].is_active[0] = false;  // 1 - 2
  const auto paths = ring.paths(1, 2);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(members_of(paths[0]), (std::vector<MemberId>{10, 40, 30, 20}));
  ring.nodes[0].is_active[1] = false;
  EXPECT_TRUE(ring.paths(1, 2).empty());
}

TEST(Paths, need_a_member_on_every_node_between) {
  Ring ring(4);
  ring.members.erase(2);
  const auto paths = ring.paths(1, 3);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(members_of(paths[0]), (std::vector<MemberId>{10, 40, 30}));
}

TEST(Paths, keep_their_relays_when_members_come) {
  Ring ring(4);
  ring.members[2] = {20, 21, 22, 23};
  const auto relay_of = [&](MemberId to) {
    return plan_paths(links_between(ring.nodes), ring.nodes, ring.members, {1, 10}, {3, to})[0].path[1].member;
  };
  std::map<MemberId, MemberId> before;
  std::set<MemberId> used;
  for (MemberId to = 100; to < 140; ++to) {
    before[to] = relay_of(to);
    used.insert(before[to]);
  }
  EXPECT_EQ(used.size(), 4U) << "all share the work";
  ring.members[2].push_back(24);
  for (const auto& [to, relay] : before) {
    const MemberId now = relay_of(to);
    EXPECT_TRUE(now == relay || now == 24) << to;
  }
}

TEST(Paths, within_a_node_take_its_first_port_that_works) {
  Ring ring(3);
  ring.members[1].push_back(11);
  ring.nodes[0].is_active[0] = false;
  const auto paths = plan_paths(links_between(ring.nodes), ring.nodes, ring.members, {1, 10}, {1, 11});
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].path[0].exit.port, 1);
  EXPECT_EQ(paths[0].path[1].entry.port, 1);
}

}  // namespace
}  // namespace ringbolt::circuit
